// The paths of the public listener beside chat completions, and errors, including unexpected
// exceptions, as the client and the operator see them.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  internalErrorReporter,
  renderError,
  shuttingDown,
} from "../../src/core/error-responses.ts";
import { ApiError, type ErrorCode, ERRORS } from "../../src/core/openai/errors.ts";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { demo, json, startGateway } from "../support/gateway.ts";
import { rawRequest } from "../support/raw.ts";
import { chunkShape, completionShape } from "../support/shapes.ts";

describe("routes", () => {
  it("take a proxy's absolute form; an HTTP/1.0 client needs no Host", async (t) => {
    const { url } = await startGateway(t, demo());
    for (const bytes of [
      "GET http://gateway.test/healthz?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
      "GET /healthz HTTP/1.0\r\n\r\n",
    ])
      assert.equal((await rawRequest(url, bytes)).status, 200);
  });

  it("openapi.json lists every status that a chat request can get, and the 429 of receipts", async (t) => {
    const gateway = await startGateway(t, demo());
    const document = await json(await fetch(`${gateway.url}/openapi.json`));
    const { responses } = document.paths["/v1/chat/completions"].post;
    // The server gives these statuses before it looks at the path, or for another method.
    const elsewhere = [405, 417, 426, 431];
    const statuses = Object.values(ERRORS).map(({ status }) => status);
    const expected = new Set([200, ...statuses.filter((status) => !elsewhere.includes(status))]);
    assert.deepEqual(Object.keys(responses).map(Number), [...expected].sort());
    for (const [code, { status }] of Object.entries(ERRORS))
      if (status === 429) assert.ok(responses[429].description.includes(code), code);
    assert.ok(429 in document.paths["/v1/requests/{request_id}"].get.responses);
  });

  it("openapi.json has the schemas that are enforced", async (t) => {
    const gateway = await startGateway(t, demo());
    const response = await fetch(`${gateway.url}/openapi.json`);
    assert.equal(response.status, 200);
    const document = await json(response);
    assert.equal(document.openapi, "3.1.0");
    const {
      ChatCompletion,
      ChatCompletionChunk,
      ChatCompletionRequest: request,
    } = document.components.schemas;
    // The published schemas of replies are those that the tests check all replies against.
    assert.deepEqual(
      [ChatCompletion, ChatCompletionChunk],
      JSON.parse(JSON.stringify([completionShape.schema, chunkShape.schema])),
    );
    assert.deepEqual(request.required, ["model", "messages"]);
    assert.deepEqual(request.dependentSchemas.stream_options.anyOf[1], {
      properties: { stream: { const: true } },
      required: ["stream"],
    });
    assert.deepEqual(request.dependentSchemas.tool_choice.anyOf[1], {
      properties: { tools: { type: "array", minItems: 1 } },
      required: ["tools"],
    });
    const assistant = request.properties.messages.items.anyOf.find(
      ({ properties }: any) => properties.role.enum[0] === "assistant",
    );
    assert.deepEqual(
      assistant.anyOf.flatMap(({ required }: any) => required),
      ["content", "refusal", "tool_calls"],
    );
  });
});

it("an API error tells SDKs not to retry where that would only cost again, beside its own headers", () => {
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
  it(`the API error ${code}, a ${status}, has that status's type, and ${mayRetry ? "may" : "must not"} be retried`, () => {
    const { type, headers } = new ApiError(code as ErrorCode, "No.");
    assert.equal(type, TYPES[status] ?? "invalid_request_error");
    assert.deepEqual(headers, mayRetry ? {} : { "x-should-retry": "false" });
  });
}

const issue = (path: (string | number)[]) =>
  ({ path, code: "invalid_type", message: "expected a string" }) as const;

it("the response to a ValidationError names the field of its first issue, or the request body", () => {
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
  it(`the response to an unexpected ${typeof thrown} is a bare 500, and the log gets its cause`, () => {
    const { error, body, headers } = renderError(thrown, "req_1", {});
    assert.deepEqual([error.status, error.code, error.cause], [500, "internal_error", thrown]);
    assert.deepEqual(headers, { "x-should-retry": "false" });
    assert.doesNotMatch(body, /secret/);
  });

it("the error at shutdown is a 503 that may be retried", () => {
  const { headers } = renderError(shuttingDown(), "req_1", {});
  assert.deepEqual(headers, { "Retry-After": "1" });
});

it("the operator's log has the thrown error with its cause", () => {
  const events: Readonly<Record<string, unknown>>[] = [];
  const report = internalErrorReporter((event) => events.push(event));
  report({ requestId: "req_1" }, new Error("outer", { cause: new Error("inner") }));
  const { detail, ...rest } = events[0]!;
  assert.deepEqual(rest, { event: "internal_error", level: "error", request_id: "req_1" });
  assert.match(String(detail), /outer[\s\S]*caused by Error: inner/);
});
