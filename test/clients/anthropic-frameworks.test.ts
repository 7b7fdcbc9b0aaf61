// The Vercel AI SDK with its provider anthropic(), and LangChain's ChatAnthropic, unmodified,
// against the gateway's Messages API, with models of each format behind it.

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
} from "./lab.ts";

const prompt = "What time is it in Oslo?";
const citiesOf = () => CALLS.map(({ arguments: text }) => JSON.parse(text).city as string);

describe("AI SDK, anthropic()", { skip: notInstalled() }, async () => {
  const { generateText, isStepCount, Output, streamText, tool } = await import("ai");
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const { z } = await import("zod");
  const models = (baseURL: string) => createAnthropic({ baseURL, apiKey: KEY });
  /** No retries: an error shows. */
  const base = { prompt, maxRetries: 0, maxOutputTokens: 2_000 };
  const thinking = {
    providerOptions: { anthropic: { thinking: { type: "adaptive", display: "summarized" } } },
  } as const;

  for (const behind of DIALECTS) {
    it(`${behind}: text and thoughts, whole and streamed`, async (t) => {
      const model = models((await startLab(t)).baseURL)(modelName(behind, "exact"));
      const whole = await generateText({ ...base, ...thinking, model });
      assert.deepEqual([whole.text, whole.reasoningText], [TEXT, REASONING]);
      assert.equal(whole.finishReason, "stop");
      const streamed = streamText({ ...base, ...thinking, model });
      assert.equal((await collect(streamed.textStream)).join(""), TEXT);
      assert.equal(await streamed.reasoningText, REASONING);
      assert.equal((await streamed.usage).outputTokens, whole.usage.outputTokens);
    });

    it(`${behind}: calls a tool, whole and streamed`, async (t) => {
      const model = models((await startLab(t)).baseURL)(modelName(behind, "parallel"));
      for (const run of [generateText, streamText] as const) {
        const cities: string[] = [];
        const get_time = tool({
          description: "The time in a city",
          inputSchema: z.object({ city: z.string() }),
          execute: async ({ city }) => {
            cities.push(city);
            return clock(city);
          },
        });
        const tools = { get_time };
        const stopWhen = isStepCount(3);
        const result = await run({ ...base, ...thinking, model, tools, stopWhen });
        assert.equal(await result.text, AFTER_CALLS);
        assert.deepEqual(cities, citiesOf());
      }
    });

    it(`${behind}: an object of a schema`, async (t) => {
      const model = models((await startLab(t)).baseURL)(modelName(behind, "demo-chat"));
      const output = Output.object({ schema: z.object({ city: z.string() }) });
      const result = await generateText({ ...base, model, output });
      assert.deepEqual(Object.keys(result.output), ["city"]);
    });
  }
});

describe("LangChain, ChatAnthropic", { skip: notInstalled() }, async () => {
  const { ChatAnthropic } = await import("@langchain/anthropic");
  const { HumanMessage } = await import("@langchain/core/messages");
  const { tool } = await import("@langchain/core/tools");
  const { concat } = await import("@langchain/core/utils/stream");
  const { z } = await import("zod");

  const modelOf = (url: string, model: string) =>
    new ChatAnthropic({
      anthropicApiUrl: url,
      apiKey: KEY,
      model,
      maxTokens: 2_000,
      maxRetries: 0,
      streamUsage: true,
    });

  for (const behind of DIALECTS) {
    it(`${behind}: text, whole and streamed`, async (t) => {
      const model = modelOf((await startLab(t)).url, modelName(behind, "exact"));
      const whole = await model.invoke(prompt);
      assert.equal(whole.text, TEXT);
      const pieces = await collect(await model.stream(prompt));
      assert.ok(pieces.length > 5);
      const streamed = pieces.reduce((all, piece) => concat(all, piece));
      assert.equal(streamed.text, TEXT);
      // It adds the count with which Anthropic's own streams begin to the one at their end.
      if (behind === "anthropic") return;
      const tokens = (message: { readonly usage_metadata?: UsageMetadata | undefined }) =>
        message.usage_metadata?.output_tokens;
      assert.equal(tokens(streamed), tokens(whole));
    });

    it(`${behind}: calls a tool`, async (t) => {
      const model = modelOf((await startLab(t)).url, modelName(behind, "parallel"));
      const get_time = tool(async ({ city }: { city: string }) => clock(city), {
        name: "get_time",
        description: "The time in a city",
        schema: z.object({ city: z.string() }),
      });
      const withTools = model.bindTools([get_time]);
      const history: BaseMessage[] = [new HumanMessage(prompt)];
      const first: AIMessage = await withTools.invoke(history);
      assert.deepEqual(
        first.tool_calls?.map(({ args }) => args["city"]),
        citiesOf(),
      );
      history.push(first);
      for (const call of first.tool_calls ?? []) history.push(await get_time.invoke(call as never));
      assert.equal((await withTools.invoke(history)).text, AFTER_CALLS);
    });
  }
});
