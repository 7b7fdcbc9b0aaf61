// What is read of a request before its handler runs: its id, its path, its body as text, and what
// stops reading. ../chat/request-checks.test.ts tests the sizes and bytes of bodies,
// extensions/bounds/capacity how they are counted.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { readBody } from "../../../src/core/http/body.ts";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { requestId, requestIdFromBytes } from "../../../src/core/http/request-id.ts";
import { match, pathOf, route } from "../../../src/core/http/router.ts";
import { ApiError } from "../../../src/core/openai/errors.ts";
import { thrownBy, within } from "../../support/wait.ts";

const GENERATED = /^req_[0-9a-f]{32}$/;

it("requestId keeps ids of up to 512 printable characters, and replaces all others", () => {
  for (const value of ["x", "a b c", "~".repeat(512), '"quoted" <tag> \\ %0d%0a'])
    assert.equal(requestId(["Host", "x", "X-Request-Id", value]), value);
  for (const value of ["", "y".repeat(513), "caf\u00e9", "tab\there", "line\nbreak"])
    assert.match(requestId(["X-Request-Id", value]), GENERATED);
});

it("the id of a malformed head is found, as far as one read goes", () => {
  const after = (bytes: number) => `G\r\nA: ${"b".repeat(bytes)}\r\nX-Request-Id: \t mine 7 \t\r\n`;
  assert.equal(requestIdFromBytes(Buffer.from(after(65_000))), "mine 7");
  assert.equal(requestIdFromBytes(Buffer.from("G\nX-Request-Id: mine\n\n")), "mine");
  const without = ["", "X-Request-Id: mine\r\n", "G\r\nX-Request-Id: mine", after(66_000)];
  for (const text of without) assert.match(requestIdFromBytes(Buffer.from(text)), GENERATED);
  assert.match(requestIdFromBytes(undefined), GENERATED);
});

const handlers = {
  chat: () => undefined,
  list: () => undefined,
  one: () => undefined,
  put: () => undefined,
};
const routes = {
  "/v1/chat/completions": { POST: handlers.chat },
  "/v1/models": { GET: handlers.list },
  "/v1/models/{id}": { GET: handlers.one, PUT: handlers.put },
};

/** The error that the route lookup throws. */
const errorOf = (method: string, path: string): ApiError =>
  thrownBy(ApiError, () => route(routes, method, path));

it("the path of a URL excludes query and origin", () => {
  for (const [url, path] of [
    ["/healthz?x=1", "/healthz"],
    ["/healthz#part", "/healthz"],
    ["/a?b#c?d", "/a"],
    ["HTTPS://gateway.test:8080/healthz?x", "/healthz"],
    ["http://gateway.test", "/"],
    ["http://gateway.test?x", ""],
    ["*", "*"],
    ["", "/"],
  ] as const)
    assert.equal(pathOf(url), path, url);
});

it("a path is found literally, or with a parameter in it", () => {
  for (const path of ["/v1/models/", "/v1/Models", "/", "constructor"])
    assert.equal(match(routes, path), undefined, path);
  assert.deepEqual(match(routes, "/v1/models"), { pattern: "/v1/models", parameter: "" });
  for (const [given, parameter] of [
    ["m", "m"],
    ["team/fast", "team/fast"],
    ["a%2Fb%20c", "a/b c"],
    ["100%", "100%"],
    ["{id}", "{id}"],
  ] as const)
    assert.deepEqual(match(routes, `/v1/models/${given}`), {
      pattern: "/v1/models/{id}",
      parameter,
    });
});

describe("route", () => {
  it("rejects another method, and lists the allowed ones", () => {
    const error = errorOf("DELETE", "/v1/models/m");
    assert.equal(error.message, "This path answers GET and HEAD and PUT only.");
    assert.equal(error.headers["Allow"], "GET, HEAD, PUT");
    assert.equal(errorOf("HEAD", "/v1/chat/completions").headers["Allow"], "POST");
    assert.equal(errorOf("constructor", "/v1/models").code, "method_not_allowed");
  });

  const SERVED = " What is served here: /v1/chat/completions, /v1/models, /v1/models/{id}.";
  for (const [path, told] of [
    ["/v1/embeddings", "/v1/embeddings"],
    ['/a"<b>\\', '/a\\"<b>\\\\'],
    [`/${"p".repeat(200)}`, `/${"p".repeat(116)}...`],
  ] as const)
    it(`answers ${path.slice(0, 40)} with the paths served here`, () => {
      const { code, message } = errorOf("GET", path);
      assert.equal(code, "unknown_url");
      assert.equal(message, `There is nothing at the path "${told}".${SERVED}`);
    });

  it("lists no paths of a listener that serves no API", () => {
    assert.throws(() => route({ "/status": { GET: handlers.one } }, "GET", "/nowhere"), {
      message: 'There is nothing at the path "/nowhere".',
    });
  });
});

/** An exchange with this body. */
function exchangeOf(body: string, headers: { [name: string]: string } = {}, httpVersion = "1.1") {
  let continued = 0;
  const pieces = body === "" ? [] : [Buffer.from(body)];
  const req = Object.assign(Readable.from(pieces), { headers, httpVersion });
  const res = { writeContinue: () => (continued += 1) };
  return {
    req: req as unknown as IncomingMessage,
    res: res as unknown as ServerResponse,
    cancel: new Cancel(),
    retain: () => undefined,
    continued: () => continued,
  };
}

/** The text of a body. Invalid headers throw at once. */
const textOf = async (exchange: Parameters<typeof readBody>[0]) =>
  within(
    readBody(exchange, 100, (text) => text),
    "the body",
  );
const read = (body: string, headers = {}) => textOf(exchangeOf(body, headers));

describe("readBody", () => {
  it("rejects an empty body as empty", () =>
    assert.rejects(read(""), { code: "invalid_json", message: /^The request body is empty/ }));

  it("takes every JSON media type, unencoded, and rejects other types and encodings", async () => {
    for (const type of ["Application/JSON ; charset=utf-8", "application/x+json"])
      assert.equal(await read("{}", { "content-type": type }), "{}");
    for (const type of ["text/plain", "application/jsonx", "", "application/+json"])
      await assert.rejects(read("{}", { "content-type": type }), {
        code: "unsupported_media_type",
        message: "Content-Type must be application/json.",
      });
    for (const encoding of [" Identity", ""])
      assert.equal(await read("{}", { "content-encoding": encoding }), "{}");
    await assert.rejects(read("{}", { "content-encoding": "gzip" }), {
      code: "unsupported_media_type",
    });
  });

  for (const [httpVersion, times] of [
    ["1.1", 1],
    ["1.0", 0],
  ] as const)
    it(`sends a client of HTTP/${httpVersion} 100 Continue ${times} times if it waits for that`, async () => {
      const exchange = exchangeOf("{}", { expect: "100-continue" }, httpVersion);
      assert.equal(await textOf(exchange), "{}");
      assert.equal(exchange.continued(), times);
      assert.equal(exchange.req.headers.expect, undefined);
    });

  it("reads nothing of a body that was rejected before its end", async () => {
    const refused = new ApiError("server_overloaded", "No room.");
    const exchange = exchangeOf("{}");
    const retain = (bytes: number) => {
      if (bytes > 0) exchange.cancel.abort(refused);
    };
    const ended = once(exchange.req, "end");
    let readings = 0;
    const reading = readBody({ ...exchange, retain }, 100, () => (readings += 1));
    await assert.rejects(within(reading, "the refusal"), (error) => error === refused);
    await within(ended, "the end of the body");
    assert.equal(readings, 0);
  });
});

it("Cancel calls each listener once, also late and nested ones, and keeps the first reason", () => {
  const cancel = new Cancel();
  const calls: string[] = [];
  cancel.onAbort(() => assert.fail("it was removed"))();
  cancel.onAbort(() => {
    calls.push("first");
    cancel.onAbort(() => calls.push("nested"));
  });
  cancel.abort("reason");
  cancel.abort("second");
  cancel.onAbort(() => calls.push("late"));
  assert.deepEqual(calls, ["first", "nested", "late"]);
  assert.deepEqual([cancel.aborted, cancel.reason], [true, "reason"]);
});

it("Cancel gives an AbortSignal with its reason, also after the abort", () => {
  const early = new Cancel();
  const { signal } = early;
  early.abort("left");
  const late = new Cancel();
  late.abort("left");
  for (const each of [signal, late.signal])
    assert.deepEqual([each.aborted, each.reason], [true, "left"]);
});
