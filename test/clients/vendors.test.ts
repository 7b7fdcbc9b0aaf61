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
  const budgeted = { thinking: { type: "enabled" as const, budget_tokens: 1_024 } };
  const tools = [{ ...TOOL, input_schema: PARAMETERS }];
  /** Each breaks one rule of a request that is otherwise good. */
  it("refuses what the published rules forbid", async (t) => {
    const provider = await startAnthropic(t, MODELS);
    const baseURL = provider.url;
    const client = new Anthropic({ baseURL, apiKey: PROVIDER_KEY, maxRetries: 0 });
    const ask = (request: object) =>
      client.messages.create({
        model: "claude-5-exact",
        messages,
        max_tokens: 4_096,
        tools,
        ...request,
      });
    const { content } = await ask({ model: "claude-5-parallel", ...adaptive });
    const [thought, first, second] = content;
    const result = (tool_use_id: string) => ({
      type: "tool_result",
      tool_use_id,
      content: "14:05",
    });
    const [one, two] = [result(CALLS[0].id), result(CALLS[1].id)];
    const said = (content: unknown, role = "user") => [{ role, content }];
    const text = (text: string) => [{ type: "text", text }];
    /** After a call, whose thoughts are signed. */
    const turns = (assistant: unknown, user: unknown) => ({
      messages: [...messages, ...said(assistant, "assistant"), ...said(user)],
    });
    const resigned = (more: object) =>
      turns([{ ...thought, ...more }, first, second], [one, two]).messages;
    const old = { model: "claude-4-5-exact" };
    const broken: readonly (readonly [rule: RegExp, request: object])[] = [
      [/logprobs: Extra inputs/, { logprobs: true }],
      [/no sampling with thinking/, { ...old, ...budgeted, temperature: 0.5 }],
      [/roles must alternate/, { messages: [...messages, ...messages] }],
      [/roles must alternate/, { messages: [...said("Hi.", "assistant"), ...messages] }],
      [/at least one message/, { messages: [] }],
      [/must be non-empty/, { messages: said("") }],
      [/non-whitespace text/, { messages: said(text(" \n")) }],
      [/trailing whitespace/, { messages: [...messages, ...said("So ", "assistant")] }],
      [/must define tools/, { tools: undefined, ...turns(content, [one, two]) }],
      [/without `tool_result` blocks/, turns(content, [one])],
      [/without `tool_result` blocks/, turns(content, [...text("Well."), one, two])],
      [/without `tool_result` blocks/, { messages: [...messages, ...said(content, "assistant")] }],
      [/unexpected `tool_use_id`/, turns("Hi.", [one, two])],
      [/String should match pattern/, turns([{ ...first, id: "call.1" }], [result("call.1")])],
      [/ids must be unique/, turns([first, first], [one, one])],
      [/Expected `thinking`/, { ...old, ...budgeted, ...turns([first, second], [one, two]) }],
      [/Invalid `signature`/, { ...adaptive, messages: resigned({ signature: "mine" }) }],
      [/Invalid `signature`/, { ...adaptive, messages: resigned({ thinking: "Other." }) }],
      [/Invalid `signature`/, { ...adaptive, ...turns([thought, first], [one]) }],
    ];
    for (const [rule, request] of broken) {
      await assert.rejects(
        ask(request),
        { status: 400, type: "invalid_request_error" },
        String(rule),
      );
      assert.match(provider.broken.at(-1)!, rule);
    }
  });
});

describe("Google's SDK and its fake", { skip: notInstalled() }, async () => {
  const { ApiError, FinishReason, GoogleGenAI, ThinkingLevel } = await import("@google/genai");

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

  for (const [model, thinkingConfig] of [
    ["gemini-3-exact", thinking.thinkingConfig],
    ["gemini-2.5-exact", { includeThoughts: true, thinkingBudget: -1 }],
  ] as const)
    it(`${model}: text and thoughts, whole and streamed`, async (t) => {
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
      for (const replies of await both({ models }, asking(model, { thinkingConfig })))
        assert.deepEqual([textOf(replies, true), textOf(replies, false)], [REASONING, TEXT]);
    });

  for (const [model, ids] of [
    ["gemini-3-parallel", true],
    ["gemini-2.5-parallel", false],
  ] as const) {
    it(`${model} calls in parallel, and their results`, async (t) => {
      const { models, chats, provider } = await start(t);
      const expected = CALLS.map(({ id, name, arguments: args }) => ({
        ...(ids && { id }),
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
  }

  /** Each breaks one rule of a request that is otherwise good. */
  it("refuses what the published rules forbid", async (t) => {
    const { models, provider } = await start(t);
    const asked = { role: "user", parts: [{ text: QUESTION }] };
    const { candidates } = await models.generateContent(asking("gemini-3-parallel", tools));
    const [first, second] = candidates![0]!.content!.parts!;
    const result = (at: number, more: object = {}) => ({
      functionResponse: {
        id: CALLS[at]!.id,
        name: CALLS[at]!.name,
        response: { result: "14:05" },
        ...more,
      },
    });
    const turns = (model: object[], user: object[]) => ({
      contents: [asked, { role: "model", parts: model }, { role: "user", parts: user }],
    });
    const calls = [first!, second!];
    const { thoughtSignature: _, ...unsigned } = first!;
    const saying = (...parts: object[]) => ({ contents: [{ role: "user", parts }] });
    const hi = (role: string) => ({ role, parts: [{ text: "Hi." }] });
    const signed = (thoughtSignature: unknown) => ({ ...first, thoughtSignature });
    const copied = { ...second, thoughtSignature: first!.thoughtSignature };
    const results = [result(0), result(1)];
    const extra = { httpOptions: { extraBody: { model: "gemini-3-exact" } } };
    const broken: readonly (readonly [RegExp, object])[] = [
      [/Unknown name/, { config: extra }],
      [/at least one part/, saying()],
      [/text parameter must not be empty/, saying({ text: "" })],
      [/valid role/, { contents: [hi("assistant")] }],
      [/alternate/, { contents: [asked, asked] }],
      [/alternate/, { contents: [hi("model"), asked] }],
      [/number of function response parts/, turns(calls, [result(0)])],
      [/number of function response parts/, turns([{ text: "Hi." }], [result(0)])],
      [/comes immediately after/, turns(calls, [{ text: "Well." }, ...results])],
      [/match the function call parts/, turns(calls, [result(0), result(1, { name: "other" })])],
      [/match the function call parts/, turns(calls, [result(0), result(0)])],
      [/function_response.response/, turns(calls, [result(0), result(1, { response: "14:05" })])],
      [/missing a thought_signature/, turns([unsigned, second!], results)],
      [/Corrupted thought signature/, turns([signed("bWluZQ=="), second!], results)],
      [/Corrupted thought signature/, turns([first!, copied], results)],
    ];
    for (const [message, request] of broken) {
      await assert.rejects(
        models.generateContent({ ...asking("gemini-3-exact"), ...request }),
        (error) => error instanceof ApiError && error.status === 400,
        String(message),
      );
      assert.match(provider.broken.at(-1)!, message);
    }
    const skipped = { ...unsigned, thoughtSignature: "skip_thought_signature_validator" };
    assert.equal(
      (
        await models.generateContent({
          ...asking("gemini-3-exact"),
          ...turns([skipped, second!], [result(1), result(0)]),
        })
      ).text,
      TEXT,
    );
  });
});
