// Errors as the client sees them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  ApiError,
  errorBody,
  ERRORS,
  toApiError,
  type ErrorCode,
} from "../../../src/core/openai/errors.ts";
import { fail, ValidationError } from "../../../src/core/schema/checker.ts";

describe("an API error", () => {
  it("has the status and the type of its code", () => {
    const { status, type, param, headers } = new ApiError("rate_limit_exceeded", "Too many.");
    assert.deepEqual([status, type, param, headers], [429, "rate_limit_error", null, {}]);
  });

  it("tells SDKs not to retry what would only cost again, beside its own headers", () => {
    const error = new ApiError("upstream_timeout", "Late.", { headers: { Allow: "POST" } });
    assert.deepEqual(error.headers, { Allow: "POST", "x-should-retry": "false" });
  });

  for (const [code, { status }] of Object.entries(ERRORS)) {
    const isTemporary = [408, 409, 429].includes(status);
    const isRepeated = code === "internal_error" || code === "upstream_timeout";
    const mayRetry = isTemporary || (status >= 500 && !isRepeated);
    it(`${code}, a ${status}, ${mayRetry ? "may" : "must not"} be retried`, () => {
      const { headers } = new ApiError(code as ErrorCode, "No.");
      assert.deepEqual(headers, mayRetry ? {} : { "x-should-retry": "false" });
    });
  }

  it("becomes a body with the request id", () => {
    const error = new ApiError("model_not_found", "None.", { param: "model" });
    assert.deepEqual(errorBody(error, "req_1"), {
      error: {
        message: "None.",
        type: "invalid_request_error",
        code: "model_not_found",
        param: "model",
        request_id: "req_1",
      },
    });
  });
});

describe("anything thrown", () => {
  it("that is a ValidationError names the field of its first issue", () => {
    const error = new ValidationError([
      { path: ["messages", 2, "role"], code: "invalid_type", message: "expected a string" },
      { path: ["n"], code: "invalid_value", message: "is wrong" },
    ]);
    const { code, param, message } = toApiError(error);
    assert.deepEqual(
      [code, param, message],
      ["invalid_type", "messages[2].role", "Invalid 'messages[2].role': expected a string."],
    );
  });

  it("that is a ValidationError at the root speaks of the request body", () => {
    let thrown: unknown;
    try {
      fail("invalid_type", "expected an object");
    } catch (error) {
      thrown = error;
    }
    const { param, message } = toApiError(thrown);
    assert.deepEqual([param, message], [null, "The request body: expected an object."]);
  });

  it("else is a bare 500 that keeps its cause for the log", () => {
    const cause = new Error("secret");
    const error = toApiError(cause);
    assert.deepEqual([error.code, error.status, error.cause], ["internal_error", 500, cause]);
    assert.ok(!error.message.includes("secret"));
  });
});
