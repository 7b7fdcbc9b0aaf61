// The vendors' own SDKs for JavaScript, unmodified, against the fake providers that speak their
// formats: what these understand without a complaint is the format. No gateway is in between.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PROVIDER_KEY } from "../support/fake-provider.ts";
import { startAnthropic } from "../support/fake-anthropic.ts";
import { startGemini } from "../support/fake-gemini.ts";
import {
  AFTER_CALLS,
  CALLS,
  clock,
  collect,
  MODELS,
  notInstalled,
  QUESTION,
  REASONING,
  TEXT,
} from "./lab.ts";

const PARAMETERS = {
  type: "object" as const,
  properties: { city: { type: "string" } },
  required: ["city"],
};
const TOOL = { name: "get_time", description: "The time in a city" };
describe("Anthropic's SDK and its fake", { skip: notInstalled() }, async () => {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const messages = [{ role: "user" as const, content: QUESTION }];
  const adaptive = { thinking: { type: "adaptive" as const, display: "summarized" as const } };
  const tools = [{ ...TOOL, input_schema: PARAMETERS }];

  it("text, thoughts and calls, whole and streamed, and the calls' results", async (t) => {
    const provider = await startAnthropic(t, MODELS);
    const client = new Anthropic({ baseURL: provider.url, apiKey: PROVIDER_KEY, maxRetries: 0 });
    const base = { max_tokens: 4_096, messages, tools, ...adaptive };
    /** The blocks of a whole reply, which are those of a streamed one. */
    const contentOf = async (model: string) => {
      const { content } = await client.messages.create({ ...base, model });
      const streamed = await client.messages.stream({ ...base, model }).finalMessage();
      assert.deepEqual(streamed.content, content);
      assert.ok(content[0]?.type === "thinking" && content[0].thinking === REASONING);
      return content;
    };
    const [, text] = await contentOf("claude-5-exact");
    assert.ok(text?.type === "text" && text.text === TEXT);
    const content = await contentOf("claude-5-parallel");
    const calls = content.filter((block) => block.type === "tool_use");
    assert.deepEqual(
      calls.map(({ id, input }) => [id, input]),
      CALLS.map(({ id, arguments: args }) => [id, JSON.parse(args)]),
    );
    const results = calls.map(({ id, input }) => ({
      type: "tool_result" as const,
      tool_use_id: id,
      content: clock((input as { city: string }).city),
    }));
    const history = [
      ...messages,
      { role: "assistant" as const, content },
      { role: "user" as const, content: results },
    ];
    const model = "claude-5-parallel";
    const answer = await client.messages.create({ ...base, model, messages: history });
    assert.ok(answer.content.some((block) => block.type === "text" && block.text === AFTER_CALLS));
    assert.deepEqual(provider.broken, []);
  });
});

describe("Google's SDK and its fake", { skip: notInstalled() }, async () => {
  const { GoogleGenAI, ThinkingLevel } = await import("@google/genai");

  it("text, thoughts and calls, whole and streamed, and the calls' results", async (t) => {
    const provider = await startGemini(t, MODELS);
    const httpOptions = { baseUrl: provider.url };
    const { models, chats } = new GoogleGenAI({ apiKey: PROVIDER_KEY, httpOptions });
    const config = {
      thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW },
      tools: [{ functionDeclarations: [{ ...TOOL, parametersJsonSchema: PARAMETERS }] }],
    };
    /** The replies to a request, whole and streamed, each in its pieces. */
    const both = async (model: string) => {
      const request = { model, contents: QUESTION, config };
      const streamed = await collect(await models.generateContentStream(request));
      return [[await models.generateContent(request)], streamed];
    };
    for (const pieces of await both("gemini-3-exact")) {
      const parts = pieces.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
      const textOf = (isThought: boolean) =>
        parts.map(({ thought = false, text }) => (thought === isThought ? text : "")).join("");
      assert.deepEqual([textOf(true), textOf(false)], [REASONING, TEXT]);
      const { candidates, usageMetadata } = pieces.at(-1)!;
      assert.equal(candidates?.[0]?.finishReason, "STOP");
      assert.equal(usageMetadata?.totalTokenCount, 27);
    }
    const model = "gemini-3-parallel";
    const expected = CALLS.map(({ id, name, arguments: args }) => ({
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
    for await (const _ of await chat.sendMessageStream({ message: QUESTION }));
    const results = expected.map(({ args, ...call }) => ({
      functionResponse: { ...call, response: { result: clock(args.city) } },
    }));
    assert.equal((await chat.sendMessage({ message: results })).text, AFTER_CALLS);
    assert.deepEqual(provider.broken, []);
  });
});
