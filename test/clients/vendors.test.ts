// The vendors' own SDKs for JavaScript, unmodified, against the fake providers that speak their
// formats: what these understand without a complaint is the format. No gateway is in between.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
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
  REASONING,
  TEXT,
} from "./lab.ts";

const QUESTION = "What time is it in Oslo?";
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
    for (const name of ["exact", "parallel"]) {
      const request = { ...base, model: `claude-5-${name}` };
      const whole = await client.messages.create(request);
      const streamed = await client.messages.stream(request).finalMessage();
      assert.deepEqual(streamed.content, whole.content);
      assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens);
      const [thought, text] = whole.content;
      assert.ok(thought?.type === "thinking" && thought.thinking === REASONING);
      if (name === "exact") assert.ok(text?.type === "text" && text.text === TEXT);
      if (name === "exact") continue;
      const calls = whole.content.filter((block) => block.type === "tool_use");
      assert.deepEqual(
        calls.map(({ id, input }) => [id, input]),
        CALLS.map(({ id, arguments: args }) => [id, JSON.parse(args)]),
      );
      const results = calls.map(({ id, input }) => ({
        type: "tool_result" as const,
        tool_use_id: id,
        content: clock((input as { city: string }).city),
      }));
      const answer = await client.messages.create({
        ...request,
        messages: [
          ...messages,
          { role: "assistant", content: whole.content },
          { role: "user", content: results },
        ],
      });
      assert.ok(
        answer.content.some((block) => block.type === "text" && block.text === AFTER_CALLS),
      );
    }
    assert.deepEqual(provider.broken, []);
  });
});

describe("Google's SDK and its fake", { skip: notInstalled() }, async () => {
  const { FinishReason, GoogleGenAI, ThinkingLevel } = await import("@google/genai");

  const start = async (t: TestContext) => {
    const provider = await startGemini(t, MODELS);
    const httpOptions = { baseUrl: provider.url };
    const { models, chats } = new GoogleGenAI({ apiKey: PROVIDER_KEY, httpOptions });
    return { provider, models, chats };
  };
  type Started = Awaited<ReturnType<typeof start>>;
  type Response = Awaited<ReturnType<Started["models"]["generateContent"]>>;
  type Asked = Parameters<Started["models"]["generateContent"]>[0];

  const asking = (model: string, config: object = {}) => ({ model, contents: QUESTION, config });
  const thinking = { thinkingConfig: { includeThoughts: true, thinkingLevel: ThinkingLevel.LOW } };
  const tools = {
    tools: [{ functionDeclarations: [{ ...TOOL, parametersJsonSchema: PARAMETERS }] }],
  };
  const textOf = (replies: readonly Response[], thought: boolean) =>
    replies
      .flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
      .map((part) => ((part.thought ?? false) === thought ? (part.text ?? "") : ""))
      .join("");
  const finishOf = ({ candidates }: Response) => candidates?.[0]?.finishReason;

  /** The replies to a request, whole and streamed. */
  const both = async ({ models }: Pick<Started, "models">, request: Asked) => [
    [await models.generateContent(request)],
    await collect(await models.generateContentStream(request)),
  ];
  const finishes = (replies: readonly Response[]) =>
    replies.flatMap((reply) => finishOf(reply) ?? []);

  it("text and thoughts, whole and streamed", async (t) => {
    const model = "gemini-3-exact";
    const { models } = await start(t);
    for (const replies of await both({ models }, asking(model))) {
      assert.deepEqual([textOf(replies, true), textOf(replies, false)], ["", TEXT]);
      assert.deepEqual(finishes(replies), [FinishReason.STOP]);
      assert.deepEqual([finishOf(replies.at(-1)!), replies[0]?.modelVersion], ["STOP", model]);
      assert.deepEqual(replies.at(-1)?.usageMetadata, {
        promptTokenCount: 20,
        cachedContentTokenCount: 8,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 3,
        totalTokenCount: 27,
      });
    }
    for (const replies of await both({ models }, asking(model, thinking)))
      assert.deepEqual([textOf(replies, true), textOf(replies, false)], [REASONING, TEXT]);
  });

  it("calls in parallel, and their results", async (t) => {
    const model = "gemini-3-parallel";
    const { models, chats, provider } = await start(t);
    const expected = CALLS.map(({ id, name, arguments: args }) => ({
      id,
      name,
      args: JSON.parse(args),
    }));
    for (const replies of await both({ models }, asking(model, tools))) {
      const calls = replies.flatMap(({ functionCalls = [] }) => functionCalls);
      assert.deepEqual([calls, finishOf(replies.at(-1)!)], [expected, FinishReason.STOP]);
    }
    const chat = chats.create({ model, config: tools });
    for await (const _ of await chat.sendMessageStream({ message: QUESTION }));
    const results = expected.map(({ args, ...call }) => ({
      functionResponse: { ...call, response: { result: clock(args.city) } },
    }));
    assert.equal((await chat.sendMessage({ message: results })).text, AFTER_CALLS);
    const heard = provider.heard.at(-1)!.messages.slice(2);
    const given = heard.map(({ role, content }) => `${role} ${content}`);
    assert.deepEqual(given, ["tool 14:05", "tool 08:05"]);
    assert.deepEqual(provider.broken, []);
  });
});
