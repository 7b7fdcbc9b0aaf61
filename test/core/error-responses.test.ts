// Whatever is thrown, as the response that the client gets.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  internalErrorReporter,
  renderError,
  shuttingDown,
} from "../../src/core/error-responses.ts";
import { ApiError, type ErrorCode } from "../../src/core/openai/errors.ts";
import { fail } from "../../src/core/schema/checker.ts";

const http: readonly (readonly [code: ErrorCode, status: number])[] = [
  ["malformed_request", 400],
  ["unknown_url", 404],
  ["method_not_allowed", 405],
  ["request_timeout", 408],
  ["request_too_large", 413],
  ["unsupported_media_type", 415],
  ["expectation_failed", 417],
  ["headers_too_large", 431],
  ["invalid_json", 400],
];

describe("renderError", () => {
  for (const [code, status] of http)
    it(`renders the HTTP error ${code} as ${status}`, () => {
      const headers = { Allow: "GET" };
      const thrown = new ApiError(code, "No.", { headers });
      const { body, headers: rendered, error } = renderError(thrown, "req_1", {});
      const all = status === 408 ? headers : { ...headers, "x-should-retry": "false" };
      assert.deepEqual([error.status, error.code, error.param], [status, code, null]);
      assert.deepEqual(rendered, all);
      const type = "invalid_request_error";
      assert.deepEqual(JSON.parse(body), {
        error: { message: "No.", type, code, param: null, request_id: "req_1" },
      });
    });

  it("renders an error of a check with the path of the field", () => {
    let thrown: unknown;
    try {
      fail("invalid_type", "expected a string, got a number", ["messages", 2, "role"]);
    } catch (error) {
      thrown = error;
    }
    const { error, body } = renderError(thrown, "req_1", {});
    assert.deepEqual(
      [error.status, error.code, error.param],
      [400, "invalid_type", "messages[2].role"],
    );
    assert.match(body, /Invalid 'messages\[2\]\.role': expected a string, got a number\./);
  });

  for (const thrown of [new TypeError("secret detail"), "secret detail", undefined])
    it(`renders ${typeof thrown} that is no error of ours as a bare 500`, () => {
      const { error, body, headers } = renderError(thrown, "req_1", {});
      assert.deepEqual([error.status, error.code], [500, "internal_error"]);
      assert.deepEqual(headers, { "x-should-retry": "false" });
      assert.doesNotMatch(body, /secret/);
    });

  it("renders the shutdown as a 503 that may be retried", () => {
    const { error, headers } = renderError(shuttingDown(), "req_1", {});
    assert.deepEqual([error.status, error.code], [503, "server_overloaded"]);
    assert.deepEqual(headers, { "Retry-After": "1" });
  });
});

describe("internalErrorReporter", () => {
  it("diagnoses what was thrown, with its cause", () => {
    const events: Readonly<Record<string, unknown>>[] = [];
    const report = internalErrorReporter((event) => events.push(event));
    report({ requestId: "req_1" }, new Error("outer", { cause: new Error("inner") }));
    const { detail, ...rest } = events[0]!;
    assert.deepEqual(rest, { event: "internal_error", level: "error", request_id: "req_1" });
    assert.match(String(detail), /outer[\s\S]*caused by Error: inner/);
  });
});
