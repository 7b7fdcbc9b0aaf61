// A request's body as text: what its headers rule out. Sizes and bytes are in
// ../chat/request-checks.test.ts, what is counted of it in extensions/bounds/capacity.

import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { describe, it } from "node:test";
import { readBody } from "../../../src/core/http/body.ts";
import { Cancel, ClientGone } from "../../../src/core/http/cancel.ts";
import { ApiError, type ErrorCode } from "../../../src/core/openai/errors.ts";
import { within } from "../../support/wait.ts";

/** An exchange whose body arrives in these pieces; null: it has more to come. */
function exchangeOf(
  pieces: readonly (Buffer | string | null)[],
  headers: { readonly [name: string]: string } = {},
  httpVersion = "1.1",
) {
  let continued = 0;
  const body = new Readable({ read: () => undefined });
  for (const piece of pieces) if (piece !== null) body.push(piece);
  if (!pieces.includes(null)) body.push(null);
  const req = Object.assign(body, { headers: { ...headers }, httpVersion });
  const res = { writeContinue: () => (continued += 1) };
  return {
    req: req as unknown as IncomingMessage,
    res: res as unknown as ServerResponse,
    cancel: new Cancel(),
    retain: () => undefined,
    continued: () => continued,
  };
}

/** The text of a body. Refusals of its headers are thrown at once. */
const textOf = async (exchange: Parameters<typeof readBody>[0], maxBytes: number) =>
  readBody(exchange, maxBytes, (text) => text);

const read = (pieces: readonly (Buffer | string | null)[], headers = {}, maxBytes = 100) =>
  within(textOf(exchangeOf(pieces, headers), maxBytes), "the body");

const refusal = (reason: ErrorCode) => (error: unknown) =>
  error instanceof ApiError && error.code === reason;

describe("readBody", () => {
  it("refuses an empty body as such", () =>
    assert.rejects(read([]), { code: "invalid_json", message: /^The request body is empty/ }));

  it("takes JSON of every name, not encoded, and refuses any other type and encoding", async () => {
    for (const type of ["Application/JSON ; charset=utf-8", "application/x+json"])
      assert.equal(await read(["{}"], { "content-type": type }), "{}");
    for (const type of ["text/plain", "application/jsonx", "", "application/+json"])
      await assert.rejects(read(["{}"], { "content-type": type }), {
        code: "unsupported_media_type",
        message: "Content-Type must be application/json.",
      });
    assert.equal(await read(["{}"], { "content-encoding": " Identity" }), "{}");
    await assert.rejects(
      read(["{}"], { "content-encoding": "gzip" }),
      refusal("unsupported_media_type"),
    );
  });

  for (const [httpVersion, times] of [
    ["1.1", 1],
    ["1.0", 0],
  ] as const)
    it(`asks a client of HTTP/${httpVersion} for the body ${times} times if it waits for that`, async () => {
      const exchange = exchangeOf(["{}"], { expect: "100-continue" }, httpVersion);
      assert.equal(await textOf(exchange, 100), "{}");
      assert.equal(exchange.continued(), times);
      assert.equal(exchange.req.headers.expect, undefined);
    });

  it("reads nothing of a body that was refused before its end", async () => {
    const refused = new ApiError("server_overloaded", "No room.");
    const exchange = exchangeOf(["{}"]);
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

  it("rejects with the reason of cancel if that comes first", async () => {
    const exchange = exchangeOf(["{", null]);
    const reading = textOf(exchange, 100);
    exchange.req.destroy(new Error("reset"));
    const reason = new ClientGone("left");
    exchange.cancel.abort(reason);
    await assert.rejects(within(reading, "the rejection"), (error) => error === reason);
  });
});
