// Errors, and whatever else is thrown, as the client and the operator see them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  internalErrorReporter,
  renderError,
  shuttingDown,
} from "../../src/core/error-responses.ts";
import { ApiError, ERRORS, type ErrorCode } from "../../src/core/openai/errors.ts";
import { ValidationError } from "../../src/core/schema/checker.ts";

describe("an API error", () => {
  it("tells SDKs not to retry what would only cost again, beside its own headers", () => {
    const error = new ApiError("upstream_timeout", "Late.", { headers: { Allow: "POST" } });
    assert.deepEqual(error.headers, { Allow: "POST", "x-should-retry": "false" });
  });

  const TYPES: Readonly<Record<number, string>> = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "service_unavailable_error",
  };
  for (const [code, { status }] of Object.entries(ERRORS)) {
    const isTemporary = [408, 409, 429].includes(status);
    const isRepeated = code === "internal_error" || code === "upstream_timeout";
    const mayRetry = isTemporary || (status >= 500 && !isRepeated);
    it(`${code}, a ${status}, has the type of that, and ${mayRetry ? "may" : "must not"} be retried`, () => {
      const { type, headers } = new ApiError(code as ErrorCode, "No.");
      assert.equal(type, TYPES[status] ?? "invalid_request_error");
      assert.deepEqual(headers, mayRetry ? {} : { "x-should-retry": "false" });
    });
  }
});

describe("anything thrown", () => {
  const issue = (path: (string | number)[]) =>
    ({ path, code: "invalid_type", message: "expected a string" }) as const;

  it("that is a ValidationError names the field of its first issue, or the request body", () => {
    for (const [path, param, subject] of [
      [["messages", 2, "role"], "messages[2].role", "Invalid 'messages[2].role'"],
      [[], null, "The request body"],
    ] as const) {
      const thrown = new ValidationError([issue([...path]), issue(["n"])]);
      const { error, body } = renderError(thrown, "req_1", {});
      assert.deepEqual([error.status, error.code, error.param], [400, "invalid_type", param]);
      assert.deepEqual(JSON.parse(body).error, {
        message: `${subject}: expected a string.`,
        type: "invalid_request_error",
        code: "invalid_type",
        param,
        request_id: "req_1",
      });
    }
  });

  for (const thrown of [new TypeError("secret detail"), "secret detail", undefined])
    it(`that is ${typeof thrown} and no error of ours is a bare 500 that keeps its cause for the log`, () => {
      const { error, body, headers } = renderError(thrown, "req_1", {});
      assert.deepEqual([error.status, error.code, error.cause], [500, "internal_error", thrown]);
      assert.deepEqual(headers, { "x-should-retry": "false" });
      assert.doesNotMatch(body, /secret/);
    });
});

it("the shutdown is a 503 that may be retried", () => {
  const { headers } = renderError(shuttingDown(), "req_1", {});
  assert.deepEqual(headers, { "Retry-After": "1" });
});

it("the operator reads what was thrown, with its cause", () => {
  const events: Readonly<Record<string, unknown>>[] = [];
  const report = internalErrorReporter((event) => events.push(event));
  report({ requestId: "req_1" }, new Error("outer", { cause: new Error("inner") }));
  const { detail, ...rest } = events[0]!;
  assert.deepEqual(rest, { event: "internal_error", level: "error", request_id: "req_1" });
  assert.match(String(detail), /outer[\s\S]*caused by Error: inner/);
});
