// The Vercel AI SDK, unmodified, with its provider for each API of the gateway: what it makes of
// texts, thoughts, tools and schemas, with models of each format behind the gateway; and a stream
// that breaks off is never taken for a reply. Frameworks that call the gateway through OpenAI's or
// Anthropic's client are run by the lines of the manual (client-programs.test.ts).

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LanguageModel } from "ai";
import {
  AFTER_CALLS,
  BAD_ENDINGS,
  CALLS,
  clock,
  DIALECTS,
  KEY,
  modelName,
  notInstalled,
  OPENING,
  QUESTION,
  REASONING,
  startLab,
  TEXT,
  type Lab,
} from "./lab.ts";

interface Provider {
  readonly modelOf: (lab: Lab, name: string) => LanguageModel;
  /** What makes a model think, and show it. */
  readonly providerOptions: Record<string, any>;
}

describe("AI SDK", { skip: notInstalled() }, async () => {
  const { generateText, isStepCount, Output, streamText, tool } = await import("ai");
  const { createAnthropic } = await import("@ai-sdk/anthropic");
  const { createOpenAI } = await import("@ai-sdk/openai");
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { z } = await import("zod");
  const schema = z.object({ city: z.string() });

  const compatible = {
    ...{ name: "chat-gateway", apiKey: KEY, includeUsage: true },
    supportsStructuredOutputs: true,
  };
  const PROVIDERS: Readonly<Record<string, Provider>> = {
    "OpenAI-compatible": {
      modelOf: ({ baseURL }, name) => createOpenAICompatible({ ...compatible, baseURL })(name),
      providerOptions: { chatGateway: { thinking: { type: "enabled" } } },
    },
    "anthropic()": {
      modelOf: ({ baseURL }, name) => createAnthropic({ baseURL, apiKey: KEY })(name),
      providerOptions: { anthropic: { thinking: { type: "adaptive", display: "summarized" } } },
    },
    "openai()": {
      modelOf: ({ baseURL }, name) => createOpenAI({ baseURL, apiKey: KEY })(name),
      // Nothing is stored here, so the SDK must send the items themselves.
      providerOptions: { openai: { store: false, forceReasoning: true, reasoningSummary: "auto" } },
    },
  };

  for (const [name, { modelOf, providerOptions }] of Object.entries(PROVIDERS))
    for (const behind of DIALECTS) {
      /** A request without retries: an error shows. */
      const asking = (lab: Lab, model: string) => ({
        model: modelOf(lab, modelName(behind, model)),
        ...{ prompt: QUESTION, maxRetries: 0, maxOutputTokens: 2_000, providerOptions },
      });

      it(`${name}, ${behind}: text, thoughts and tokens, whole and streamed`, async (t) => {
        const lab = await startLab(t);
        for (const run of [generateText, streamText]) {
          const onError = ({ error }: { error: unknown }) => assert.fail(String(error));
          const reply = await run({ ...asking(lab, "exact"), onError });
          assert.deepEqual([await reply.text, await reply.reasoningText], [TEXT, REASONING]);
          assert.equal((await reply.usage).outputTokens, 7);
        }
      });

      it(`${name}, ${behind}: calls tools, whole and streamed, and an object of a schema`, async (t) => {
        const lab = await startLab(t);
        for (const run of [generateText, streamText]) {
          const cities: string[] = [];
          const get_time = tool({
            description: "The time in a city",
            inputSchema: schema,
            execute: async ({ city }) => {
              cities.push(city);
              return clock(city);
            },
          });
          const stopWhen = isStepCount(3);
          const reply = await run({ ...asking(lab, "parallel"), tools: { get_time }, stopWhen });
          assert.equal(await reply.text, AFTER_CALLS);
          assert.deepEqual(
            cities,
            CALLS.map(({ arguments: args }) => JSON.parse(args).city),
          );
        }
        const output = Output.object({ schema });
        const shaped = await generateText({ ...asking(lab, "shaped"), output });
        assert.deepEqual(shaped.output, { city: OPENING.city });
      });

      it(`${name}, ${behind}: a stream that breaks off is an error`, async (t) => {
        const lab = await startLab(t);
        for (const ending of BAD_ENDINGS) {
          const errors: unknown[] = [];
          const onError = ({ error }: { error: unknown }) => {
            errors.push(error);
          };
          const { text } = streamText({ ...asking(lab, ending), onError });
          await Promise.allSettled([text]);
          assert.equal(errors.length, 1, ending);
        }
      });
    }
});
