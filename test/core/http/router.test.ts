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

describe("pathOf", () => {
  const cases: readonly (readonly [url: string, path: string])[] = [
    ["/healthz", "/healthz"],
    ["/healthz?x=1", "/healthz"],
    ["/healthz#part", "/healthz"],
    ["/a?b#c?d", "/a"],
    ["http://gateway.test/healthz?x", "/healthz"],
    ["HTTPS://gateway.test:8080/healthz", "/healthz"],
    ["http://gateway.test", "/"],
    ["http://gateway.test?x", ""],
    ["*", "*"],
    ["", "/"],
  ];
  for (const [url, path] of cases)
    it(`takes ${JSON.stringify(path)} from ${JSON.stringify(url)}`, () => {
      assert.equal(pathOf(url), path);
    });
});

describe("match", () => {
  const cases: readonly (readonly [path: string, found: ReturnType<typeof match>])[] = [
    ["/v1/models", { pattern: "/v1/models", parameter: "" }],
    ["/v1/models/m", { pattern: "/v1/models/{id}", parameter: "m" }],
    ["/v1/models/team/fast", { pattern: "/v1/models/{id}", parameter: "team/fast" }],
    ["/v1/models/a%2Fb%20c", { pattern: "/v1/models/{id}", parameter: "a/b c" }],
    ["/v1/models/100%", { pattern: "/v1/models/{id}", parameter: "100%" }],
    ["/v1/models/{id}", { pattern: "/v1/models/{id}", parameter: "{id}" }],
    ["/v1/models/", undefined],
    ["/v1/Models", undefined],
    ["/", undefined],
    ["constructor", undefined],
  ];
  for (const [path, found] of cases)
    it(`${found ? "finds" : "does not find"} ${path}`, () => {
      assert.deepEqual(match(routes, path), found);
    });
});

describe("route", () => {
  it("finds the handler by the method; HEAD is GET where there is no handler for it", () => {
    assert.equal(route(routes, "POST", "/v1/chat/completions").handler, handlers.chat);
    const found = route(routes, "PUT", "/v1/models/m");
    assert.deepEqual(found, { handler: handlers.put, parameter: "m" });
    assert.equal(route(routes, "HEAD", "/v1/models").handler, handlers.list);
  });

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
