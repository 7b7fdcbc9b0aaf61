// The paths of the public listener beside chat completions.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ERRORS } from "../../src/core/openai/errors.ts";
import { demo, json, startGateway } from "../support/gateway.ts";
import { chunkShape, completionShape } from "../support/shapes.ts";
import { rawRequest } from "../support/raw.ts";

describe("routes", () => {
  it("takes the absolute form of a proxy; an HTTP/1.0 client needs no Host", async (t) => {
    const { url } = await startGateway(t, demo());
    for (const bytes of [
      "GET http://gateway.test/healthz?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
      "GET /healthz HTTP/1.0\r\n\r\n",
    ])
      assert.equal((await rawRequest(url, bytes)).status, 200);
  });

  it("openapi.json: every status that a chat request can get", async (t) => {
    const gateway = await startGateway(t, demo());
    const document = await json(await fetch(`${gateway.url}/openapi.json`));
    const { responses } = document.paths["/v1/chat/completions"].post;
    // What is refused before the path is looked at, or for another method, is no answer of it.
    const elsewhere = [405, 417, 426, 431];
    const statuses = Object.values(ERRORS).map(({ status }) => status);
    const expected = new Set([200, ...statuses.filter((status) => !elsewhere.includes(status))]);
    assert.deepEqual(Object.keys(responses).map(Number), [...expected].sort());
    for (const [code, { status }] of Object.entries(ERRORS))
      if (status === 429) assert.ok(responses[429].description.includes(code), code);
  });

  it("openapi.json: the document, with the schemas that are enforced", async (t) => {
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
    // What is published of replies is what the tests hold all replies against.
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
    const refs = JSON.stringify(document).match(/#\/components\/schemas\/\w+/g) ?? [];
    assert.ok(refs.length > 5);
    for (const ref of refs) assert.ok(document.components.schemas[ref.split("/").at(-1)!], ref);
  });
});
