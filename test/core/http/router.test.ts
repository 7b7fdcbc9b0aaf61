// Which handler a request is for, and what the client reads if there is none.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { match, pathOf, route } from "../../../src/core/http/router.ts";
import { ApiError } from "../../../src/core/openai/errors.ts";

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

/** The error that finding the handler throws. */
function errorOf(method: string, path: string): ApiError {
  try {
    route(routes, method, path);
  } catch (error) {
    assert.ok(error instanceof ApiError);
    return error;
  }
  return assert.fail(`${method} ${path} has a handler`);
}

it("the path of a URL has neither query nor origin", () => {
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

it("a path is found as it is, or with a parameter in its place", () => {
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
  it("refuses another method and says which ones there are", () => {
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
    it(`answers ${path.slice(0, 40)} with what is served here`, () => {
      const { code, message } = errorOf("GET", path);
      assert.equal(code, "unknown_url");
      assert.equal(message, `There is nothing at the path "${told}".${SERVED}`);
    });

  it("names no paths of a listener that serves no API", () => {
    assert.throws(() => route({ "/status": { GET: handlers.one } }, "GET", "/nowhere"), {
      message: 'There is nothing at the path "/nowhere".',
    });
  });
});
