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
const INPUTS = CALLS.map(({ id, name, arguments: args }) => ({
  id,
  name,
  input: JSON.parse(args),
}));

describe("Anthropic's SDK and its fake", { skip: notInstalled() }, async () => {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  type Params = Parameters<InstanceType<typeof Anthropic>["messages"]["create"]>[0];

  const start = async (t: Parameters<typeof startAnthropic>[0], options: object = {}) => {
    const provider = await startAnthropic(t, MODELS);
    return {
      provider,
      client: new Anthropic({
        baseURL: provider.url,
        apiKey: PROVIDER_KEY,
        maxRetries: 0,
        ...options,
      }),
    };
  };

  const messages = [{ role: "user" as const, content: QUESTION }];
  const asking = (model: string) => ({ model, messages, max_tokens: 4_096 });
  const adaptive = { thinking: { type: "adaptive" as const, display: "summarized" as const } };
  const budgeted = { thinking: { type: "enabled" as const, budget_tokens: 1_024 } };
  const tools = [{ ...TOOL, input_schema: PARAMETERS }];
  /**
   * Each breaks one rule of a request that is otherwise good. The turns are after a call, whose
   * thoughts are signed.
   */
  it("refuses what the published rules forbid", async (t) => {
    const { client, provider } = await start(t);
    const { content } = await client.messages.create({
      ...asking("claude-5-parallel"),
      ...adaptive,
      tools,
    });
    const [thought, first, second] = content;
    const result = (at: number) => ({
      type: "tool_result" as const,
      tool_use_id: CALLS[at]!.id,
      content: "14:05",
    });
    const answer = [result(0), result(1)];
    const turns = (assistant: unknown, user: unknown) => [
      ...messages,
      { role: "assistant", content: assistant },
      { role: "user", content: user },
    ];
    const strict = { ...PARAMETERS, additionalProperties: false };
    const old = { model: "claude-4-5-exact" };
    const broken: readonly (readonly [RegExp, object])[] = [
      [/max_tokens/, { max_tokens: undefined }],
      [/logprobs: Extra inputs/, { logprobs: true }],
      [/roles must alternate/, { messages: [...messages, ...messages] }],
      [/roles must alternate/, { messages: [{ role: "assistant", content: "Hi." }, ...messages] }],
      [/at least one message/, { messages: [] }],
      [/must be non-empty/, { messages: [{ role: "user", content: "" }] }],
      [
        /non-whitespace text/,
        { messages: [{ role: "user", content: [{ type: "text", text: " \n" }] }] },
      ],
      [/trailing whitespace/, { messages: [...messages, { role: "assistant", content: "So " }] }],
      [
        /name: Extra inputs/,
        { messages: [{ role: "user", content: [{ type: "text", text: "Hi.", name: "me" }] }] },
      ],
      [/must define tools/, { tools: undefined, messages: turns(content, answer) }],
      [/without `tool_result` blocks/, { messages: turns(content, [result(0)]) }],
      [
        /without `tool_result` blocks/,
        { messages: turns(content, [{ type: "text", text: "Well." }, ...answer]) },
      ],
      [/without `tool_result` blocks/, { messages: turns(content, answer).slice(0, 2) }],
      [/unexpected `tool_use_id`/, { messages: turns("Hi.", answer) }],
      [
        /String should match pattern/,
        {
          messages: turns([{ ...first, id: "call.1" }], [{ ...result(0), tool_use_id: "call.1" }]),
        },
      ],
      [/ids must be unique/, { messages: turns([first, first], [result(0), result(0)]) }],
      [/Expected `thinking`/, { ...old, ...budgeted, messages: turns([first, second], answer) }],
      [
        /Invalid `signature`/,
        {
          ...adaptive,
          messages: turns([{ ...thought, signature: "mine" }, first, second], answer),
        },
      ],
      [
        /Invalid `signature`/,
        {
          ...adaptive,
          messages: turns([{ ...thought, thinking: "Other." }, first, second], answer),
        },
      ],
      [/Invalid `signature`/, { ...adaptive, messages: turns([thought, first], [result(0)]) }],
      [/forces tool use/, { ...adaptive, tool_choice: { type: "any" } }],
      [/only be specified while providing tools/, { tools: [], tool_choice: { type: "auto" } }],
      [/not found in provided tools/, { tool_choice: { type: "tool", name: "other" } }],
      [
        /disable_parallel_tool_use: Extra inputs/,
        { tool_choice: { type: "none", disable_parallel_tool_use: true } },
      ],
      [/names must be unique/, { tools: [...tools, ...tools] }],
      [/input_schema.type/, { tools: [{ ...TOOL, input_schema: {} }] }],
      [/additionalProperties/, { tools: [{ ...TOOL, input_schema: PARAMETERS, strict: true }] }],
      [
        /'minimum' is not supported/,
        {
          output_config: {
            format: {
              type: "json_schema",
              schema: { ...strict, properties: { hours: { type: "integer", minimum: 7 } } },
            },
          },
        },
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
    ];
    const earlier = { headers: { "anthropic-version": "2023-06-01" } };
    const brokenEarlier: readonly (readonly [RegExp, object])[] = [
      [/temperature: range: 0..1/, { ...old, temperature: 1.5 }],
      [/cannot both be specified/, { ...old, temperature: 0.5, top_p: 0.5 }],
      [/set to 1 when thinking/, { ...old, ...budgeted, temperature: 0.5 }],
      [/deprecated for this model/, { temperature: 0.5 }],
    ];
    const refused = async (request: object, options: object) =>
      client.messages
        .create({ ...asking("claude-5-exact"), tools, ...request } as Params, options)
        .then(
          () => assert.fail(JSON.stringify(request)),
          (error: InstanceType<typeof Anthropic.APIError>) => [error.status, error.type],
        );
    for (const [list, options] of [
      [broken, {}],
      [brokenEarlier, earlier],
    ] as const) {
      for (const [message, request] of list) {
        assert.deepEqual(await refused(request, options), [400, "invalid_request_error"]);
        assert.match(provider.broken.at(-1)!, message);
      }
    }
    assert.deepEqual(await refused({}, { headers: { "anthropic-version": "2020-01-01" } }), [
      400,
      "invalid_request_error",
    ]);
    const good = await client.messages.create(
      { ...asking("claude-4-5-exact"), ...{ temperature: 0.5 } },
      earlier,
    );
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
  type Response = Awaited<
    ReturnType<Awaited<ReturnType<typeof start>>["models"]["generateContent"]>
  >;

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

  it("text, whole and streamed", async (t) => {
    const { models } = await start(t);
    for (const model of ["gemini-3-exact", "gemini-2.5-exact"]) {
      const whole = await models.generateContent(asking(model));
      assert.deepEqual(
        [whole.text, finishOf(whole), whole.modelVersion],
        [TEXT, FinishReason.STOP, model],
      );
      const usage = {
        promptTokenCount: 20,
        cachedContentTokenCount: 8,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 3,
        totalTokenCount: 27,
      };
      assert.deepEqual(whole.usageMetadata, usage);
      const streamed = await collect(await models.generateContentStream(asking(model)));
      assert.ok(streamed.length > 5);
      assert.equal(streamed.map(({ text = "" }) => text).join(""), TEXT);
      assert.deepEqual(
        streamed.flatMap((reply) => finishOf(reply) ?? []),
        [FinishReason.STOP],
      );
      assert.deepEqual(
        [finishOf(streamed.at(-1)!), streamed.at(-1)?.usageMetadata],
        [FinishReason.STOP, usage],
      );
    }
  });

  for (const [model, config] of [
    ["gemini-3-exact", thinking],
    ["gemini-2.5-exact", { thinkingConfig: { includeThoughts: true, thinkingBudget: -1 } }],
  ] as const) {
    it(`${model} thinks, whole and streamed`, async (t) => {
      const { models } = await start(t);
      for (const replies of [
        [await models.generateContent(asking(model, config))],
        await collect(await models.generateContentStream(asking(model, config))),
      ]) {
        assert.deepEqual([textOf(replies, true), textOf(replies, false)], [REASONING, TEXT]);
      }
    });
  }

  for (const [model, ids] of [
    ["gemini-3-parallel", true],
    ["gemini-2.5-parallel", false],
  ] as const) {
    it(`${model} calls in parallel, and their results`, async (t) => {
      const { models, chats, provider } = await start(t);
      const expected = INPUTS.map(({ id, name, input }) => ({
        ...(ids && { id }),
        name,
        args: input,
      }));
      const whole = await models.generateContent(asking(model, tools));
      const streamed = await collect(await models.generateContentStream(asking(model, tools)));
      assert.deepEqual([whole.functionCalls, finishOf(whole)], [expected, FinishReason.STOP]);
      assert.deepEqual(
        streamed.flatMap(({ functionCalls = [] }) => functionCalls),
        expected,
      );
      const chat = chats.create({ model, config: tools });
      for await (const _ of await chat.sendMessageStream({ message: QUESTION }));
      const results = expected.map(({ args, ...call }) => ({
        functionResponse: { ...call, response: { result: clock(args.city) } },
      }));
      assert.equal((await chat.sendMessage({ message: results })).text, AFTER_CALLS);
      assert.deepEqual(
        provider.heard
          .at(-1)
          ?.messages.slice(2)
          .map(({ role, content }) => [role, content]),
        [
          ["tool", "14:05"],
          ["tool", "08:05"],
        ],
      );
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
    const reply = await models.generateContent(
      asking("gemini-3-demo-reasoner", { ...thinking, tools: [{ tool, callTool }] }),
    );
    assert.equal(reply.text, "The tool says: 14:05");
    assert.equal(provider.heard.length, 2);
  });

  it("JSON, by a schema and without", async (t) => {
    const { models } = await start(t);
    const json = { responseMimeType: "application/json" };
    const properties = { city: { type: "string" }, hours: { type: "integer", minimum: 7 } };
    const responseJsonSchema = { type: "object", properties, required: ["city", "hours"] };
    const strict = await models.generateContent(
      asking("gemini-3-demo-chat", { ...json, responseJsonSchema }),
    );
    assert.deepEqual(JSON.parse(strict.text!), { city: "Oslo", hours: 7 });
    assert.equal(
      JSON.parse((await models.generateContent(asking("gemini-3-demo-chat", json))).text!).question,
      QUESTION,
    );
  });

  it("log probabilities, whole and streamed", async (t) => {
    const { models } = await start(t);
    const asked = asking("gemini-3-demo-chat", { responseLogprobs: true, logprobs: 2 });
    const whole = await models.generateContent(asked);
    const streamed = await collect(await models.generateContentStream(asked));
    for (const replies of [[whole], streamed]) {
      const results = replies.flatMap(({ candidates }) => candidates?.[0]?.logprobsResult ?? []);
      assert.equal(
        results
          .flatMap(({ chosenCandidates = [] }) => chosenCandidates)
          .map(({ token }) => token)
          .join(""),
        whole.text,
      );
      assert.ok(
        results
          .flatMap(({ topCandidates = [] }) => topCandidates)
          .every(({ candidates }) => candidates?.length === 2),
      );
    }
  });

  it("stops where the limit is", async (t) => {
    const { models } = await start(t);
    const asked = asking("gemini-3-demo-chat", { maxOutputTokens: 3 });
    assert.equal(finishOf(await models.generateContent(asked)), FinishReason.MAX_TOKENS);
    assert.equal(
      finishOf((await collect(await models.generateContentStream(asked))).at(-1)!),
      FinishReason.MAX_TOKENS,
    );
  });

  const statuses = [
    { status: 400, name: "INVALID_ARGUMENT", key: "sk-nobody", model: "gemini-3-exact" },
    { status: 404, name: "NOT_FOUND", model: "gemini-3-none" },
    { status: 500, name: "INTERNAL", model: "gemini-3-broken" },
  ] as const;
  for (const expected of statuses) {
    it(expected.name, async (t) => {
      const { models } = await start(t, "key" in expected ? expected.key : undefined);
      for (const call of [models.generateContent, models.generateContentStream]) {
        await assert.rejects(call(asking(expected.model)), (error) => {
          assert.ok(error instanceof ApiError);
          assert.deepEqual(
            [error.status, JSON.parse(error.message).error.status],
            [expected.status, expected.name],
          );
          return true;
        });
      }
    });
  }

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
    const both = [first!, second!];
    const { thoughtSignature: _, ...unsigned } = first!;
    const mode = (mode: string, more: object = {}) => ({
      config: { ...tools, toolConfig: { functionCallingConfig: { mode, ...more } } },
    });
    const declared = (more: object) => ({
      config: { tools: [{ functionDeclarations: [{ ...TOOL, ...more }] }] },
    });
    const old = { model: "gemini-2.5-exact" };
    const broken: readonly (readonly [RegExp, object])[] = [
      [/Unknown name/, { config: { httpOptions: { extraBody: { model: "gemini-3-exact" } } } }],
      [/at least one part/, { contents: [{ role: "user", parts: [] }] }],
      [/text parameter must not be empty/, { contents: [{ role: "user", parts: [{ text: "" }] }] }],
      [/valid role/, { contents: [{ role: "assistant", parts: [{ text: "Hi." }] }] }],
      [/alternate/, { contents: [asked, asked] }],
      [/alternate/, { contents: [{ role: "model", parts: [{ text: "Hi." }] }, asked] }],
      [/number of function response parts/, turns(both, [result(0)])],
      [/number of function response parts/, turns([{ text: "Hi." }], [result(0)])],
      [/comes immediately after/, turns(both, [{ text: "Well." }, result(0), result(1)])],
      [/match the function call parts/, turns(both, [result(0), result(1, { name: "other" })])],
      [/match the function call parts/, turns(both, [result(0), result(0)])],
      [/function_response.response/, turns(both, [result(0), result(1, { response: "14:05" })])],
      [/missing a thought_signature/, turns([unsigned, second!], [result(0), result(1)])],
      [
        /Corrupted thought signature/,
        turns([{ ...first, thoughtSignature: "bWluZQ==" }, second!], [result(0), result(1)]),
      ],
      [
        /Corrupted thought signature/,
        turns(
          [first!, { ...second, thoughtSignature: first!.thoughtSignature }],
          [result(0), result(1)],
        ),
      ],
      [
        /without function_declarations/,
        {
          config: {
            toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.AUTO } },
          },
        },
      ],
      [
        /only when function calling mode is ANY/,
        mode("AUTO", { allowedFunctionNames: ["get_time"] }),
      ],
      [/not declared/, mode("ANY", { allowedFunctionNames: ["other"] })],
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
      [
        /only one of thinking budget/,
        { config: { thinkingConfig: { thinkingBudget: 0, thinkingLevel: "LOW" } } },
      ],
      [/level is not supported/, { ...old, config: { thinkingConfig: { thinkingLevel: "LOW" } } }],
      [/budget is not supported/, { config: { thinkingConfig: { thinkingBudget: 0 } } }],
      [/is invalid/, { ...old, config: { thinkingConfig: { thinkingBudget: 100_000 } } }],
      [
        /mime type: 'application\/json' is unsupported/,
        { ...old, config: { ...tools, responseMimeType: "application/json" } },
      ],
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
