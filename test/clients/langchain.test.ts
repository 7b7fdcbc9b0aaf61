// LangChain's ChatOpenAI, unmodified, against the running gateway. Its requests are those of OpenAI's
// own client (openai.test.ts); here is what LangChain makes of the answers.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AIMessage, BaseMessage, UsageMetadata } from "@langchain/core/messages";
import {
  AFTER_CALLS,
  CALLS,
  clock,
  collect,
  DIALECTS,
  KEY,
  modelName,
  notInstalled,
  REASONING,
  startLab,
  TEXT,
  type Lab,
} from "./lab.ts";
import { QUESTION } from "./talk.ts";

describe("LangChain", { skip: notInstalled() }, async () => {
  const { ChatOpenAI } = await import("@langchain/openai");
  const { HumanMessage } = await import("@langchain/core/messages");
  const { tool } = await import("@langchain/core/tools");
  const { concat } = await import("@langchain/core/utils/stream");
  const { z } = await import("zod");

  /** No retries unless a test is about them. */
  const modelOf = ({ baseURL }: Lab, model: string, more: object = {}) =>
    new ChatOpenAI({ model, apiKey: KEY, maxRetries: 0, configuration: { baseURL }, ...more });
  type Chat = Pick<InstanceType<typeof ChatOpenAI>, "invoke" | "stream">;
  const question = new HumanMessage(QUESTION);
  const get_time = tool(({ city }: { city: string }) => clock(city), {
    name: "get_time",
    description: "The time in a city",
    schema: z.object({ city: z.string() }),
  });

  /**
   * A stream put together. Not through the option `streaming`: with it invoke loads a tokenizer
   * from the internet.
   */
  const streamed = async (model: Chat, messages: BaseMessage[]) =>
    (await collect(await model.stream(messages))).reduce((all, chunk) => concat(all, chunk));
  const whole = (model: Chat, messages: BaseMessage[]): Promise<AIMessage> =>
    model.invoke(messages);

  for (const behind of DIALECTS) {
    const named = (name: string): string => modelName(behind, name);

    it(`${behind}: text, thoughts and usage, whole and streamed`, async (t) => {
      const modelKwargs = { thinking: { type: "enabled" } };
      const model = modelOf(await startLab(t), named("exact"), { modelKwargs });
      for (const ask of [whole, streamed]) {
        const reply = await ask(model, [question]);
        const { model_name, finish_reason } = reply.response_metadata;
        assert.deepEqual([reply.text, model_name, finish_reason], [TEXT, named("exact"), "stop"]);
        assert.equal(reply.additional_kwargs["reasoning_content"], REASONING);
        const usage = reply.usage_metadata as UsageMetadata | undefined;
        assert.deepEqual(
          [usage?.input_tokens, usage?.output_tokens, usage?.total_tokens],
          [20, 7, 27],
        );
        assert.equal(usage?.input_token_details?.cache_read, 8);
        assert.equal(usage?.output_token_details?.reasoning, 3);
      }
    });

    it(`${behind}: calls tools, and sends their results back, whole and streamed`, async (t) => {
      const model = modelOf(await startLab(t), named("parallel"));
      const bound = model.bindTools([get_time], { tool_choice: "auto" });
      for (const ask of [whole, streamed]) {
        const reply: AIMessage = await ask(bound, [question]);
        const calls = reply.tool_calls!.map(({ id, args }) => ({ id, args }));
        const expected = CALLS.map(({ id, arguments: text }) => ({ id, args: JSON.parse(text) }));
        assert.deepEqual(calls, expected);
        const results = await Promise.all(reply.tool_calls!.map((call) => get_time.invoke(call)));
        assert.equal((await ask(bound, [question, reply, ...results])).text, AFTER_CALLS);
      }
    });

    it(`${behind}: a tool can be demanded, and JSON of a schema`, async (t) => {
      const model = modelOf(await startLab(t), named("demo-chat"));
      for (const tool_choice of ["any", "get_time"]) {
        const { tool_calls } = await model
          .bindTools([get_time], { tool_choice })
          .invoke([question]);
        const made = tool_calls?.map(({ name, args }) => [name, args]);
        assert.deepEqual(made, [["get_time", { city: "Oslo" }]]);
      }
      const schema = z.object({ city: z.string(), hours: z.int().min(7), open: z.boolean() });
      for (const method of ["jsonSchema", "functionCalling"] as const) {
        const structured = model.withStructuredOutput(schema, { method, strict: true });
        const opening = { city: "Oslo", hours: 7, open: true };
        assert.deepEqual(await structured.invoke([question]), opening);
      }
      const answer = z.object({ answer: z.string() });
      const any = model.withStructuredOutput(answer, { method: "jsonMode" });
      assert.deepEqual(await any.invoke([question]), { answer: "This is the demo model." });
    });
  }

  it("tools bound without tool_choice are called only if the operator has said so", async (t) => {
    for (const [compat, called] of [
      [{}, 0],
      [{ tool_choice_default: "auto" }, 1],
    ] as const) {
      const lab = await startLab(t, { compat });
      for (const behind of DIALECTS) {
        const bound = modelOf(lab, modelName(behind, "demo-chat")).bindTools([get_time]);
        const { tool_calls } = await bound.invoke([question]);
        assert.equal(tool_calls?.length, called, behind);
      }
    }
  });

  it("errors have its own codes", async (t) => {
    const lab = await startLab(t);
    const refused = async (model: string, more: object = {}) =>
      modelOf(lab, model, more)
        .invoke([question])
        .catch(({ status, lc_error_code: code }) => [status, code]);
    assert.deepEqual(await refused("none"), [404, "MODEL_NOT_FOUND"]);
    const wrongKey = await refused("exact", { apiKey: "sk-nobody" });
    assert.deepEqual(wrongKey, [401, "MODEL_AUTHENTICATION"]);
  });
});
