// The vendors' own SDKs for JavaScript, unmodified, against the fake providers that speak their
// formats: what these understand without a complaint is the format. No gateway is in between.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OWN_WORDS, PROVIDER_KEY } from "../support/fake-provider.ts";
import { startAnthropic } from "../support/fake-anthropic.ts";
import { startGemini } from "../support/fake-gemini.ts";
import {
  AFTER_CALLS,
  BEFORE_BAD_ENDING,
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
    const ask = (request: object, version?: string) =>
      client.messages.create(
        { model: "claude-5-exact", messages, max_tokens: 4_096, tools, ...request },
        version === undefined ? {} : { headers: { "anthropic-version": version } },
      );
    const { content } = await ask({ model: "claude-5-parallel", ...adaptive });
    const [thought, first, second] = content;
    const result = (tool_use_id: string) => ({
      type: "tool_result",
      tool_use_id,
      content: "14:05",
    });
    const [one, two] = [result(CALLS[0].id), result(CALLS[1].id)];
    const said = (content: unknown, role = "user") => [{ role, content }];
    const text = (text: string, more: object = {}) => [{ type: "text", text, ...more }];
    /** After a call, whose thoughts are signed. */
    const turns = (assistant: unknown, user: unknown) => ({
      messages: [...messages, ...said(assistant, "assistant"), ...said(user)],
    });
    const resigned = (more: object) =>
      turns([{ ...thought, ...more }, first, second], [one, two]).messages;
    const choosing = (type: string, more: object = {}) => ({ tool_choice: { type, ...more } });
    const hours = { type: "object", properties: { hours: { type: "integer", minimum: 7 } } };
    const schema = { ...hours, required: ["hours"], additionalProperties: false };
    const old = { model: "claude-4-5-exact" };
    const earlier = "2023-06-01";
    const broken: readonly (readonly [rule: RegExp, request: object, version?: string])[] = [
      [/max_tokens/, { max_tokens: undefined }],
      [/logprobs: Extra inputs/, { logprobs: true }],
      [/roles must alternate/, { messages: [...messages, ...messages] }],
      [/roles must alternate/, { messages: [...said("Hi.", "assistant"), ...messages] }],
      [/at least one message/, { messages: [] }],
      [/must be non-empty/, { messages: said("") }],
      [/non-whitespace text/, { messages: said(text(" \n")) }],
      [/trailing whitespace/, { messages: [...messages, ...said("So ", "assistant")] }],
      [/name: Extra inputs/, { messages: said(text("Hi.", { name: "me" })) }],
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
      [/forces tool use/, { ...adaptive, ...choosing("any") }],
      [/only be specified while providing tools/, { tools: [], ...choosing("auto") }],
      [/not found in provided tools/, choosing("tool", { name: "other" })],
      [
        /disable_parallel_tool_use: Extra inputs/,
        choosing("none", { disable_parallel_tool_use: true }),
      ],
      [/names must be unique/, { tools: [...tools, ...tools] }],
      [/input_schema.type/, { tools: [{ ...TOOL, input_schema: {} }] }],
      [/additionalProperties/, { tools: [{ ...TOOL, input_schema: PARAMETERS, strict: true }] }],
      [
        /'minimum' is not supported/,
        { output_config: { format: { type: "json_schema", schema } } },
      ],
      [/temperature: Extra inputs/, { temperature: 0.5 }],
      [/adaptive thinking is not supported/, { ...old, ...adaptive }],
      [/"thinking.type.enabled" is not supported/, budgeted],
      [/effort parameter/, { ...old, output_config: { effort: "low" } }],
      [
        /greater than or equal to 1024/,
        { ...old, thinking: { type: "enabled", budget_tokens: 1_023 } },
      ],
      [/`max_tokens` must be greater/, { ...old, max_tokens: 1_024, ...budgeted }],
      [/non-whitespace/, { stop_sequences: ["\n"] }],
      [/temperature: range: 0..1/, { ...old, temperature: 1.5 }, earlier],
      [/cannot both be specified/, { ...old, temperature: 0.5, top_p: 0.5 }, earlier],
      [/set to 1 when thinking/, { ...old, ...budgeted, temperature: 0.5 }, earlier],
      [/deprecated for this model/, { temperature: 0.5 }, earlier],
    ];
    const refused = { status: 400, type: "invalid_request_error" };
    for (const [rule, request, version] of broken) {
      await assert.rejects(ask(request, version), refused, String(rule));
      assert.match(provider.broken.at(-1)!, rule);
    }
    await assert.rejects(ask({}, "2020-01-01"), refused);
    const good = await ask({ ...old, temperature: 0.5 }, earlier);
    assert.equal(good.stop_reason, "end_turn");
  });
});

describe("Google's SDK and its fake", { skip: notInstalled() }, async () => {
  const { ApiError, FinishReason, FunctionCallingConfigMode, GoogleGenAI, ThinkingLevel } =
    await import("@google/genai");

  const start = async (t: Parameters<typeof startGemini>[0], apiKey = PROVIDER_KEY) => {
    const provider = await startGemini(t, MODELS);
    const { models, chats } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: provider.url } });
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

  it("the SDK goes round its tool loop", async (t) => {
    const { models, provider } = await start(t);
    const tool = async () => ({ functionDeclarations: tools.tools[0]!.functionDeclarations });
    const callTool = async (
      calls: { name?: string; id?: string; args?: Record<string, unknown> }[],
    ) =>
      calls.map(({ args, ...call }) => ({
        functionResponse: { ...call, response: { result: clock(String(args?.["city"])) } },
      }));
    const config = { ...thinking, tools: [{ tool, callTool }] };
    const reply = await models.generateContent(asking("gemini-3-demo-reasoner", config));
    assert.deepEqual([reply.text, provider.heard.length], ["The tool says: 14:05", 2]);
  });

  it("JSON, log probabilities, and a limit, whole and streamed", async (t) => {
    const { models } = await start(t);
    const replies = (config: object) => both({ models }, asking("gemini-3-demo-chat", config));
    const responseMimeType = "application/json";
    const properties = { city: { type: "string" }, hours: { type: "integer", minimum: 7 } };
    const responseJsonSchema = { type: "object", properties, required: ["city", "hours"] };
    for (const each of await replies({ responseMimeType, responseJsonSchema }))
      assert.deepEqual(JSON.parse(textOf(each, false)), { city: "Oslo", hours: 7 });
    for (const each of await replies({ responseMimeType }))
      assert.equal(JSON.parse(textOf(each, false)).question, QUESTION);
    for (const each of await replies({ responseLogprobs: true, logprobs: 2 })) {
      const results = each.flatMap(({ candidates }) => candidates?.[0]?.logprobsResult ?? []);
      const chosen = results.flatMap(({ chosenCandidates = [] }) => chosenCandidates);
      assert.equal(chosen.map(({ token }) => token).join(""), textOf(each, false));
      const top = results.flatMap(({ topCandidates = [] }) => topCandidates);
      assert.ok(top.every(({ candidates }) => candidates?.length === 2));
    }
    for (const each of await replies({ maxOutputTokens: 3 }))
      assert.deepEqual(finishes(each), [FinishReason.MAX_TOKENS]);
  });

  for (const [status, name, model, key] of [
    [400, "INVALID_ARGUMENT", "gemini-3-exact", "sk-nobody"],
    [404, "NOT_FOUND", "gemini-3-none", undefined],
    [500, "INTERNAL", "gemini-3-broken", undefined],
  ] as const)
    it(name, async (t) => {
      const { models } = await start(t, key);
      for (const call of [models.generateContent, models.generateContentStream])
        await assert.rejects(call(asking(model)), (error) => {
          assert.ok(error instanceof ApiError);
          const { error: body } = JSON.parse(error.message);
          assert.deepEqual([error.status, body.status], [status, name]);
          return true;
        });
    });

  it("streams that break off", async (t) => {
    const { models } = await start(t);
    let text = "";
    const read = async (model: string) => {
      text = "";
      for await (const reply of await models.generateContentStream(asking(model))) {
        text += reply.text ?? "";
        assert.equal(finishOf(reply), undefined);
      }
    };
    await assert.rejects(
      read("gemini-3-error-event"),
      (error) =>
        error instanceof ApiError && error.status === 500 && error.message.includes(OWN_WORDS),
    );
    assert.equal(text, BEFORE_BAD_ENDING);
    await assert.rejects(read("gemini-3-cut"));
    assert.equal(text, BEFORE_BAD_ENDING);
    // Of a stream that merely ends too soon the SDK says nothing; only the finish reason is
    // missing.
    await read("gemini-3-unfinished");
    assert.equal(text, BEFORE_BAD_ENDING);
  });

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
    const mode = (mode: string, ...allowedFunctionNames: string[]) => ({
      config: { ...tools, toolConfig: { functionCallingConfig: { mode, allowedFunctionNames } } },
    });
    const declared = (more: object) => ({
      config: { tools: [{ functionDeclarations: [{ ...TOOL, ...more }] }] },
    });
    const old = { model: "gemini-2.5-exact" };
    const saying = (...parts: object[]) => ({ contents: [{ role: "user", parts }] });
    const hi = (role: string) => ({ role, parts: [{ text: "Hi." }] });
    const signed = (thoughtSignature: unknown) => ({ ...first, thoughtSignature });
    const copied = { ...second, thoughtSignature: first!.thoughtSignature };
    const results = [result(0), result(1)];
    const thinks = (config: object) => ({ config: { thinkingConfig: config } });
    const auto = { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } };
    const json = { responseMimeType: "application/json" };
    const broken: readonly (readonly [RegExp, object])[] = [
      [/Unknown name/, { config: { httpOptions: { extraBody: { model: "gemini-3-exact" } } } }],
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
      [/without function_declarations/, { config: { toolConfig: auto } }],
      [/only when function calling mode is ANY/, mode("AUTO", "get_time")],
      [/not declared/, mode("ANY", "other")],
      [/must start with a letter/, declared({ name: "1st" })],
      [/must be an object/, declared({ parametersJsonSchema: "{}" })],
      [
        /mutually exclusive/,
        declared({ parameters: { type: "OBJECT" }, parametersJsonSchema: PARAMETERS }),
      ],
      [/temperature value/, { config: { temperature: 2.5 } }],
      [/at most 5/, { config: { stopSequences: ["a", "b", "c", "d", "e", "f"] } }],
      [/response_mime_type/, { config: { responseJsonSchema: PARAMETERS } }],
      [/response_logprobs/, { config: { logprobs: 2 } }],
      [/only one of thinking budget/, thinks({ thinkingBudget: 0, thinkingLevel: "LOW" })],
      [/level is not supported/, { ...old, ...thinks({ thinkingLevel: "LOW" }) }],
      [/budget is not supported/, thinks({ thinkingBudget: 0 })],
      [/is invalid/, { ...old, ...thinks({ thinkingBudget: 100_000 }) }],
      [/mime type: 'application\/json' is unsupported/, { ...old, config: { ...tools, ...json } }],
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
