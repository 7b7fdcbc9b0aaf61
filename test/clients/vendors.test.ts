// Google's own SDK for JavaScript, unmodified, against the fake provider that speaks its format:
// what both understand without a complaint is the format. No gateway is in between. Anthropic's SDK
// meets its fake in anthropic.test.ts: there the gateway passes on what both say.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PROVIDER_KEY } from "../support/fake-provider.ts";
import { startGemini } from "../support/fake-gemini.ts";
import * as facts from "./lab.ts";

describe("Google's SDK and its fake", { skip: facts.notInstalled() }, async () => {
  const { GoogleGenAI, ThinkingLevel } = await import("@google/genai");

  it("text, thoughts and calls, whole and streamed, and the calls' results", async (t) => {
    const provider = await startGemini(t, facts.MODELS);
    const httpOptions = { baseUrl: provider.url };
    const { models, chats } = new GoogleGenAI({ apiKey: PROVIDER_KEY, httpOptions });
    const config = {
      thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
      tools: [
        { functionDeclarations: [{ ...facts.TOOL, parametersJsonSchema: facts.PARAMETERS }] },
      ],
    };
    /** The replies to a request, whole and streamed, each in its pieces. */
    const both = async (model: string) => {
      const request = { model, contents: facts.QUESTION, config };
      const streamed = await facts.collect(await models.generateContentStream(request));
      return [[await models.generateContent(request)], streamed];
    };
    for (const pieces of await both("gemini-3-exact")) {
      const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
      const textOf = (isThought: boolean) =>
        parts.map(({ thought = false, text }) => (thought === isThought ? text : "")).join("");
      assert.deepEqual([textOf(true), textOf(false)], [facts.REASONING, facts.TEXT]);
      const { candidates, usageMetadata } = pieces.at(-1)!;
      assert.equal(candidates?.[0]?.finishReason, "STOP");
      assert.equal(usageMetadata?.totalTokenCount, 27);
    }
    const model = "gemini-3-parallel";
    const expected = facts.CALLS.map(({ id, name, arguments: args }) => ({
      id,
      name,
      args: JSON.parse(args),
    }));
    for (const pieces of await both(model))
      assert.deepEqual(
        pieces.flatMap(({ functionCalls = [] }) => functionCalls),
        expected,
      );
    const chat = chats.create({ model, config });
    for await (const _ of await chat.sendMessageStream({ message: facts.QUESTION }));
    const results = expected.map(({ args, ...call }) => ({
      functionResponse: { ...call, response: { result: facts.clock(args.city) } },
    }));
    assert.equal((await chat.sendMessage({ message: results })).text, facts.AFTER_CALLS);
    assert.deepEqual(provider.broken, []);
  });
});
