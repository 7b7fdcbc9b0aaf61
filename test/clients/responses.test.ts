// The official openai client with its helpers, unmodified, on the Responses API of the running
// gateway. The AI SDK and OpenAI's agents are in frameworks.test.ts.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { ResponseInput } from "openai/resources/responses/responses";
import {
  AFTER_CALLS,
  BAD_ENDINGS,
  CALLS,
  callsVia,
  clock,
  collect,
  DIALECTS,
  KEY,
  modelName,
  notInstalled,
  QUESTION,
  REASONING,
  startLab,
} from "./lab.ts";

describe("openai, Responses API", { skip: notInstalled() }, async () => {
  const { default: OpenAI, APIError, BadRequestError } = await import("openai");
  const { zodTextFormat } = await import("openai/helpers/zod");
  const { z } = await import("zod");
  async function start(t: TestContext) {
    const lab = await startLab(t);
    return { lab, client: new OpenAI({ baseURL: lab.baseURL, apiKey: KEY, maxRetries: 0 }) };
  }
  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  };
  const tool = { type: "function", name: "get_time", strict: false, parameters } as const;

  for (const behind of DIALECTS)
    it(`${behind}: a conversation with tools goes on with its own items`, async (t) => {
      const { lab, client } = await start(t);
      const request = {
        model: modelName(behind, "parallel"),
        tools: [tool],
        reasoning: { summary: "auto" as const },
        include: ["reasoning.encrypted_content" as const],
        store: false,
      };
      const asked = { role: "user" as const, content: QUESTION };
      const first = await client.responses.stream({ ...request, input: [asked] }).finalResponse();
      const [thought] = first.output;
      assert.ok(thought?.type === "reasoning" && thought.encrypted_content);
      assert.deepEqual(thought.summary, [{ type: "summary_text", text: REASONING }]);
      const calls = first.output.filter((item) => item.type === "function_call");
      assert.deepEqual(
        calls.map(({ call_id, name, arguments: text }) => ({ id: call_id, name, arguments: text })),
        callsVia(behind, true),
      );
      const results = calls.map(({ call_id, arguments: text }) => ({
        type: "function_call_output" as const,
        call_id,
        output: clock(JSON.parse(text).city),
      }));
      const items = [asked, ...first.output, ...results] as ResponseInput;
      const second = await client.responses.create({ ...request, input: items });
      assert.equal(second.output_text, AFTER_CALLS);
      const { messages } = lab.provider(behind).heard.at(-1)!;
      assert.equal(messages.filter(({ role }) => role === "tool").length, CALLS.length);
    });

  it("parses structured output, whole and streamed", async (t) => {
    const { client } = await start(t);
    const shape = z.object({ answer: z.string() });
    const format = zodTextFormat(shape, "reply");
    const request = { model: "demo-chat", input: QUESTION, text: { format } };
    const whole = await client.responses.parse(request);
    assert.equal(typeof whole.output_parsed!.answer, "string");
    const streamed = await client.responses.stream(request).finalResponse();
    assert.deepEqual(streamed.output_parsed, whole.output_parsed);
  });

  it("throws the SDK's own errors", async (t) => {
    const { client } = await start(t);
    const stored = client.responses.create({ model: "demo-chat", input: QUESTION, store: true });
    await assert.rejects(stored, (error) => {
      assert.ok(error instanceof BadRequestError);
      assert.deepEqual([error.code, error.param], ["unsupported_value", "store"]);
      assert.match(error.requestID!, /^req_/);
      return true;
    });
    for (const name of BAD_ENDINGS) {
      const request = { model: name, input: QUESTION, stream: true as const };
      await assert.rejects(collect(await client.responses.create(request)), APIError);
    }
  });
});
