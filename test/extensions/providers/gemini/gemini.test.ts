// What Gemini is asked, and how its answers are read: wire.md "Gemini requests" and "Gemini
// replies", written down here once more by hand, through a running gateway.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { hashedId } from "../../../../src/extensions/providers/turns/index.ts";
import { OWN_WORDS } from "../../../support/fake-provider.ts";
import {
  assemble,
  assertSound,
  configFor,
  json,
  readStream,
  startGateway,
  user,
} from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import {
  event,
  rawStream,
  speak,
  startProvider,
  status,
  type Behaviour,
} from "../../../support/provider.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };
const streamed = ({ path }: { path: string }) => path.includes(":streamGenerateContent");

/** A reply, or a piece of one. */
const said = (
  parts: readonly object[],
  finishReason?: string,
  more: object = {},
  usage: object = { promptTokenCount: 20, candidatesTokenCount: 4 },
): Json => ({
  candidates: [
    { content: { parts, role: "model" }, ...(finishReason && { finishReason }), index: 0, ...more },
  ],
  usageMetadata: usage,
  responseId: "r",
});
/** Ends without [DONE]. */
const sse = (events: readonly unknown[]) => rawStream(events.map(event).join(""));
/** Whole and streamed. */
const either =
  (body: object, events: readonly object[]): Behaviour =>
  (asked) =>
    (streamed(asked) ? sse(events) : status(200, body))(asked);
/** The same reply as asked, whole and streamed: its parts one by one, then nothing but the end. */
const reply = (parts: readonly object[], finishReason = "STOP"): Behaviour =>
  either(said(parts, finishReason), [...parts.map((part) => said([part])), said([], finishReason)]);
const fine = reply([{ text: "Hi." }]);

/**
 * What is sent of the sampling parameters where the client says neither: the provider's own
 * temperature is 1, its topP is not.
 */
const SILENT = { topP: 1 };

const MODELS = {
  level: { reasoning: true },
  budget: { reasoning: true, thinking: "budget" },
  plain: {},
  unsigned: { thinking: "budget" },
  mute: { reasoning: true, thinking: "none" },
  "level-on": { reasoning: true, thinking_off: false },
  "budget-on": { reasoning: true, thinking: "budget", thinking_off: false },
};

/**
 * A gateway before Gemini, and an alias for each way to think: the model, then one of another
 * provider that has no more room.
 */
async function bench(t: TestContext, behaviour: Behaviour = fine) {
  const provider = await startProvider(t, behaviour);
  const other = await startProvider(t, speak("Fine."));
  const models = Object.fromEntries(
    Object.entries(MODELS).map(([name, settings]) => [
      name,
      { provider: "google", upstream_model: `gemini-${name}`, context_tokens: 9_000, ...settings },
    ]),
  );
  const gw = await startGateway(
    t,
    configFor(other.url, ["other"], {
      providers: { google: { vendor: "gemini", base_url: provider.url, api_key: "g-secret" } },
      models: { ...models, other: { context_tokens: 9_000 } },
      aliases: { both: { models: ["level", "other"] } },
    }),
  );
  /** Asks, and must succeed; gives what Gemini was asked. */
  async function ask(fields: object): Promise<Json> {
    const before = provider.asked.length;
    const response = await gw.chat({ model: "plain", messages: user("hi"), ...fields });
    assert.equal(response.status, 200, `${JSON.stringify(fields)}: ${await response.text()}`);
    assert.equal(provider.asked.length, before + 1);
    return provider.asked[before]!.body;
  }
  return { gw, asked: provider.asked, ask };
}

/** Asks for a reply whole and streamed: both must say the same, but for ids that nobody gave. */
async function answers(t: TestContext, behaviour: Behaviour, request: object = {}) {
  const { gw } = await bench(t, behaviour);
  const ask = (more: object) =>
    gw.chat({ model: "level", messages: user("hi"), ...ON, ...request, ...more });
  const response = await ask({});
  const whole = await json(response);
  assert.equal(response.status, 200, JSON.stringify(whole));
  const { chunks, done, error } = await readStream(
    await ask({ stream: true, stream_options: { include_usage: true } }),
  );
  assertSound(chunks, "level");
  assert.deepEqual([done, error], [true, undefined]);
  const { message, finish_reason, logprobs } = assemble(chunks);
  const [choice] = whole.choices;
  const plain = ({ content, tool_calls, ...rest }: Json): Json => ({
    content: content || null,
    ...rest,
    ...(tool_calls && { tool_calls: tool_calls.map(anonymous) }),
  });
  assert.deepEqual(
    [plain(message), finish_reason, chunks.at(-1)!.usage],
    [plain(choice.message), choice.finish_reason, whole.usage],
  );
  return {
    message: plain(choice.message),
    finish: choice.finish_reason,
    usage: whole.usage,
    logprobs: choice.logprobs,
    streamed: logprobs,
  };
}
const anonymous = ({ id, ...call }: Json) => ({
  id: /^call_[0-9a-f]{24}$/.test(id) ? "generated" : id,
  ...call,
});

const fn = (name: string, more: object = {}) => ({ type: "function", function: { name, ...more } });
const call = (id: string, name = "f", args = "{}") => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const result = (id: string, content: string) => ({ role: "tool", tool_call_id: id, content });
const calls = (...tool_calls: object[]) => ({ role: "assistant", content: null, tool_calls });
const called = (id: string, name = "f", args: object = {}, thoughtSignature?: string) => ({
  functionCall: { id, name, args },
  ...(thoughtSignature && { thoughtSignature }),
});
const answered = (id: string, response: object, name = "f") => ({
  functionResponse: { id, name, response },
});
const says = (role: "user" | "model", ...parts: object[]) => ({ role, parts });
const HI = says("user", { text: "hi" });
/** Stands for a signature that was never seen. */
const SKIP = "skip_thought_signature_validator";

describe("what Gemini is asked", { concurrency: 2 }, () => {
  it("its address, its key, and no field that it does not know", async (t) => {
    const { ask, asked } = await bench(t);
    for (const [stream, method] of [
      [false, "generateContent"],
      [true, "streamGenerateContent?alt=sse"],
    ] as const) {
      const body = await ask({
        stream,
        user: "alice",
        store: true,
        parallel_tool_calls: false,
        reasoning_effort: "high",
        ...(stream && { stream_options: { include_usage: true } }),
      });
      assert.deepEqual(body, { contents: [HI], generationConfig: SILENT });
      const { path, headers } = asked.at(-1)!;
      assert.deepEqual(
        [path, headers["x-goog-api-key"], headers.authorization],
        [`/v1beta/models/gemini-plain:${method}`, "g-secret", undefined],
      );
    }
  });

  const media = (part: object) => [
    { role: "user", content: [{ type: "text", text: "see" }, part] },
  ];
  const image = (url: string) => media({ type: "image_url", image_url: { url } });
  const CONVERSATIONS: [name: string, messages: object[], contents: object[], system?: string][] = [
    [
      "system texts from everywhere",
      [
        { role: "system", content: "a" },
        ...user("hi"),
        { role: "developer", content: "b" },
        { role: "system", content: " " },
      ],
      [HI],
      "a\n\nb",
    ],
    [
      "turns",
      [...user("hi"), { role: "assistant", content: "yes" }, ...user("so")],
      [HI, says("model", { text: "yes" }), says("user", { text: "so" })],
    ],
    [
      "neighbours, and texts that are empty",
      [
        ...user("hi"),
        ...user(""),
        ...user("you"),
        { role: "assistant", content: "a" },
        { role: "assistant", content: "" },
        { role: "assistant", content: "b" },
        ...user(" "),
        ...user("so"),
      ],
      [
        says("user", { text: "hi" }, { text: "you" }),
        says("model", { text: "a" }, { text: "b" }),
        says("user", { text: "so" }),
      ],
    ],
    [
      "no user at first",
      [{ role: "assistant", content: "Welcome." }, ...user("hi")],
      [
        says("user", { text: "(The conversation begins.)" }),
        says("model", { text: "Welcome." }),
        HI,
      ],
    ],
    [
      "an image in the request",
      image("data:image/png;base64,AA=="),
      [says("user", { text: "see" }, { inlineData: { mimeType: "image/png", data: "AA==" } })],
    ],
    ...[
      ["https://x.test/a.webp?b", "image/webp"],
      ["https://x.test/a.PNG", "image/png"],
      ["https://x.test/a", "image/jpeg"],
    ].map(([fileUri, mimeType]): [string, object[], object[]] => [
      `an image elsewhere: ${fileUri}`,
      image(fileUri!),
      [says("user", { text: "see" }, { fileData: { fileUri, mimeType } })],
    ]),
    [
      "sound",
      media({ type: "input_audio", input_audio: { data: "AA==", format: "mp3" } }),
      [says("user", { text: "see" }, { inlineData: { mimeType: "audio/mp3", data: "AA==" } })],
    ],
    [
      "a file",
      media({
        type: "file",
        file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
      }),
      [
        says(
          "user",
          { text: "see" },
          { inlineData: { mimeType: "application/pdf", data: "AA==" } },
        ),
      ],
    ],
    [
      "calls and results, whatever they hold",
      [
        ...user("hi"),
        {
          ...calls(
            call("a", "f", '{"x":1}'),
            call("b", "g", ""),
            call("c", "g", "oops"),
            call("d", "f", "[1]"),
          ),
          content: "See:",
        },
        result("b", "[1]"),
        result("a", '{"y":2}'),
        result("d", "14:05"),
        result("c", "3"),
        ...user("so"),
      ],
      [
        HI,
        says(
          "model",
          { text: "See:" },
          called("a", "f", { x: 1 }),
          called("b", "g"),
          called("c", "g", { _raw: "oops" }),
          called("d", "f", { _raw: "[1]" }),
        ),
        says(
          "user",
          answered("a", { y: 2 }),
          answered("b", { result: "[1]" }, "g"),
          answered("c", { result: "3" }, "g"),
          answered("d", { result: "14:05" }),
          { text: "so" },
        ),
      ],
    ],
    [
      "a result that is missing, and one that is empty",
      [...user("hi"), calls(call("a"), call("b")), result("b", "")],
      [
        HI,
        says("model", called("a"), called("b")),
        says("user", answered("a", { result: "" }), answered("b", { result: "" })),
      ],
    ],
    [
      "ids that come again: a result is the latest call's",
      [
        ...user("hi"),
        calls(call("a")),
        ...user("no"),
        calls(call("a_2", "g")),
        calls(call("a", "g")),
        result("a", "1"),
        result("a_2", "2"),
      ],
      [
        HI,
        says("model", called("a")),
        says("user", answered("a", { result: "" }), { text: "no" }),
        says("model", called("a_2", "g")),
        says("user", answered("a_2", { result: "2" }, "g")),
        says("model", called(hashedId("2 a"), "g")),
        says("user", answered(hashedId("2 a"), { result: "1" }, "g")),
      ],
    ],
  ];
  for (const [name, messages, contents, system] of CONVERSATIONS) {
    it(name, async (t) => {
      const { ask } = await bench(t);
      assert.deepEqual(await ask({ model: "unsigned", messages }), {
        ...(system && { systemInstruction: { parts: [{ text: system }] } }),
        contents,
        generationConfig: SILENT,
      });
    });
  }

  it("signatures come back with their calls, from a whole reply and from a stream; those never seen are stood in for where they must be", async (t) => {
    const parts = [
      { text: "Hm.", thought: true },
      called("a", "f", {}, "c2ln"),
      called("b", "g"),
      { text: "", thoughtSignature: "ZW5k" },
    ];
    for (const stream of [false, true]) {
      const { ask } = await bench(t, reply(parts));
      const messages = [
        ...user("hi"),
        calls(call("a"), call("b", "g")),
        result("a", "1"),
        result("b", "2"),
        calls(call("c"), call("d")),
        result("c", "3"),
        result("d", "4"),
      ];
      const contents = (first?: string, second?: string) => [
        HI,
        says("model", called("a", "f", {}, first), called("b", "g")),
        says("user", answered("a", { result: "1" }), answered("b", { result: "2" }, "g")),
        says("model", called("c", "f", {}, second), called("d")),
        says("user", answered("c", { result: "3" }), answered("d", { result: "4" })),
      ];
      for (const [model, first, second] of [
        ["level", SKIP, SKIP],
        ["plain", SKIP, SKIP],
        ["budget", undefined, undefined],
        ["mute", undefined, undefined],
      ] as const) {
        const fresh = await bench(t);
        assert.deepEqual(
          (await fresh.ask({ model, messages })).contents,
          contents(first, second),
          model,
        );
      }
      await ask({ model: "level", stream, ...ON });
      assert.deepEqual((await ask({ model: "level", messages })).contents, contents("c2ln", SKIP));
      assert.deepEqual((await ask({ model: "budget", messages })).contents, contents("c2ln"));
    }
  });

  it("a call without an id gets one, with which its signature is found again", async (t) => {
    const { gw, ask } = await bench(
      t,
      reply([{ functionCall: { name: "f", args: { x: 1 } }, thoughtSignature: "c2ln" }]),
    );
    const [given] = (await json(await gw.chat({ model: "level", messages: user("hi") }))).choices[0]
      .message.tool_calls;
    assert.match(given.id, /^call_[0-9a-f]{24}$/);
    const { contents } = await ask({
      model: "level",
      messages: [...user("hi"), calls(given), result(given.id, "1")],
    });
    assert.deepEqual(contents.slice(1), [
      says("model", called(given.id, "f", { x: 1 }, "c2ln")),
      says("user", answered(given.id, { result: "1" })),
    ]);
  });

  it("what another format signed is none of Gemini's signatures", async (t) => {
    const provider = await startProvider(t, fine);
    const thought = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
    const message = {
      type: "message",
      content: [thought, { type: "tool_use", id: "toolu_1", name: "f", input: {} }],
      stop_reason: "tool_use",
      usage: {},
    };
    const claude = await startProvider(t, status(200, message));
    const gw = await startGateway(
      t,
      configFor(claude.url, [], {
        providers: {
          google: { vendor: "gemini", base_url: provider.url },
          claude: { vendor: "anthropic", base_url: claude.url },
        },
        models: { google: { provider: "google" }, claude: { provider: "claude", reasoning: true } },
      }),
    );
    const {
      choices: [
        {
          message: { tool_calls },
        },
      ],
    } = await json(await gw.chat({ model: "claude", messages: user("hi"), ...ON }));
    assert.equal(
      (
        await gw.chat({
          model: "google",
          messages: [...user("hi"), calls(...tool_calls), result("toolu_1", "1")],
        })
      ).status,
      200,
    );
    assert.deepEqual(
      provider.asked[0]!.body["contents"][1],
      says("model", called("toolu_1", "f", {}, SKIP)),
    );
  });

  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    additionalProperties: false,
  };
  const TOOLS = [fn("f", { description: "Clock", parameters, strict: true }), fn("g")];
  const tools = [
    {
      functionDeclarations: [
        { name: "f", description: "Clock", parametersJsonSchema: parameters },
        { name: "g", parametersJsonSchema: { type: "object" } },
      ],
    },
  ];
  const schema = { type: "object", properties: {} };
  const JSON_TYPE = { responseMimeType: "application/json" };
  const FIELDS: [fields: object, config: object, more?: object][] = [
    [
      {
        temperature: 1.5,
        top_p: 0.9,
        max_tokens: 100,
        stop: "END",
        seed: 7,
        frequency_penalty: 0.5,
        presence_penalty: -0.5,
      },
      {
        temperature: 1.5,
        topP: 0.9,
        maxOutputTokens: 100,
        stopSequences: ["END"],
        seed: 7,
        frequencyPenalty: 0.5,
        presencePenalty: -0.5,
      },
    ],
    [
      { temperature: 0, top_p: 0, stop: [], max_completion_tokens: 9 },
      { temperature: 0, topP: 0, maxOutputTokens: 9 },
    ],
    [
      { logprobs: true, top_logprobs: 2 },
      { responseLogprobs: true, logprobs: 2 },
    ],
    [{ logprobs: true }, { responseLogprobs: true }],
    [{ top_logprobs: 2 }, {}],
    [{ response_format: { type: "text" } }, {}],
    [{ response_format: { type: "json_object" } }, JSON_TYPE],
    [
      { response_format: { type: "json_schema", json_schema: { name: "x", schema } } },
      { ...JSON_TYPE, responseJsonSchema: schema },
    ],
    [{ response_format: { type: "json_schema", json_schema: { name: "x" } } }, JSON_TYPE],
    ...(
      [
        [undefined, { mode: "NONE" }],
        ["none", { mode: "NONE" }],
        ["auto", { mode: "AUTO" }],
        ["required", { mode: "ANY" }],
        [fn("g"), { mode: "ANY", allowedFunctionNames: ["g"] }],
      ] as const
    ).map(([tool_choice, functionCallingConfig]): [object, object, object] => [
      { tools: TOOLS, tool_choice },
      {},
      { tools, toolConfig: { functionCallingConfig } },
    ]),
    [{ tools: [], tool_choice: "none" }, {}],
  ];
  for (const [fields, generationConfig, more] of FIELDS) {
    it(JSON.stringify(fields).slice(0, 100), async (t) => {
      const { ask } = await bench(t);
      assert.deepEqual(await ask(fields), {
        contents: [HI],
        generationConfig: { ...SILENT, ...generationConfig },
        ...more,
      });
    });
  }

  it("thinking: by level, by budget, on, off, as little as can be, and not at all", async (t) => {
    const { ask } = await bench(t);
    const CASES: [model: string, fields: object, thinkingConfig?: object][] = [
      ["level", {}, { includeThoughts: false, thinkingLevel: "MINIMAL" }],
      ["level-on", {}, { includeThoughts: false, thinkingLevel: "LOW" }],
      ["budget", {}, { includeThoughts: false, thinkingBudget: 0 }],
      ["budget-on", {}, { includeThoughts: false, thinkingBudget: 128 }],
      ["level", { reasoning_effort: "none" }, { includeThoughts: false, thinkingLevel: "MINIMAL" }],
      ["level", { reasoning_effort: "high" }, { includeThoughts: false, thinkingLevel: "HIGH" }],
      ["level-on", { reasoning_effort: "high" }, { includeThoughts: false, thinkingLevel: "HIGH" }],
      ["budget", { reasoning_effort: "low" }, { includeThoughts: false, thinkingBudget: 1024 }],
      [
        "budget",
        { thinking: { type: "disabled" }, reasoning_effort: "high" },
        { includeThoughts: false, thinkingBudget: 0 },
      ],
      ["budget", { thinking: { type: "disabled" } }, { includeThoughts: false, thinkingBudget: 0 }],
      ...["level", "level-on"].flatMap((model): typeof CASES => [
        [model, ON, { includeThoughts: true }],
        ...(
          [
            ["minimal", "LOW"],
            ["low", "LOW"],
            ["medium", "MEDIUM"],
            ["high", "HIGH"],
            ["max", "HIGH"],
          ] as const
        ).map(([reasoning_effort, thinkingLevel]): (typeof CASES)[0] => [
          model,
          { ...ON, reasoning_effort },
          { includeThoughts: true, thinkingLevel },
        ]),
      ]),
      ...["budget", "budget-on"].flatMap((model): typeof CASES => [
        [model, ON, { includeThoughts: true, thinkingBudget: -1 }],
        ...(
          [
            ["minimal", 1024],
            ["low", 1024],
            ["medium", 8192],
            ["high", 24_576],
            ["xhigh", 24_576],
          ] as const
        ).map(([reasoning_effort, thinkingBudget]): (typeof CASES)[0] => [
          model,
          { ...ON, reasoning_effort },
          { includeThoughts: true, thinkingBudget },
        ]),
      ]),
      ["plain", ON],
      ["plain", { reasoning_effort: "high" }],
      ["mute", ON],
      ["mute", {}],
    ];
    for (const [model, fields, thinkingConfig] of CASES) {
      assert.deepEqual(
        (await ask({ model, ...fields })).generationConfig,
        { ...SILENT, ...(thinkingConfig && { thinkingConfig }) },
        `${model} ${JSON.stringify(fields)}`,
      );
    }
  });
});

describe("what Gemini answers", { concurrency: 2 }, () => {
  const THOUGHTS = [
    { text: "Let ", thought: true },
    { text: "me.", thought: true },
  ];
  const f = { id: "a", type: "function", function: { name: "f", arguments: '{"x":"\u00d8"}' } };
  const g = { id: "generated", type: "function", function: { name: "g", arguments: "{}" } };
  const F = {
    functionCall: { id: "a", name: "f", args: { x: "\u00d8" } },
    thoughtSignature: "c2ln",
  };
  const REPLIES: [name: string, parts: object[], message: object, finish: string][] = [
    [
      "a text in pieces",
      [{ text: "Hel" }, { text: "" }, { text: "lo." }],
      { content: "Hello." },
      "stop",
    ],
    [
      "thoughts, then text",
      [...THOUGHTS, { text: "Hi." }],
      { content: "Hi.", reasoning_content: "Let me." },
      "stop",
    ],
    [
      "a signature on a text, and one on nothing",
      [
        { text: "Hi.", thoughtSignature: "c2ln" },
        { text: "", thoughtSignature: "ZW5k" },
      ],
      { content: "Hi." },
      "stop",
    ],
    [
      "parts of its own tools are left out, those of other kinds are text",
      [{ executableCode: { code: "1" } }, { text: "Hi." }, { somethingNew: {} }],
      { content: 'Hi.{"somethingNew":{}}' },
      "stop",
    ],
    [
      "an image and no text",
      [{ inlineData: { mimeType: "image/png", data: "AA==" }, thoughtSignature: "c2ln" }],
      { content: '{"inlineData":{"mimeType":"image/png","data":"AA=="}}' },
      "stop",
    ],
    [
      "thoughts, text and calls at once, one of them without an id and arguments",
      [...THOUGHTS, { text: "So:" }, F, { functionCall: { name: "g" } }],
      { content: "So:", reasoning_content: "Let me.", tool_calls: [f, g] },
      "tool_calls",
    ],
    [
      "calls without ids, of one function",
      [
        { functionCall: { name: "g", args: {} } },
        { functionCall: { id: "", name: "g", args: null } },
      ],
      { content: null, tool_calls: [g, g] },
      "tool_calls",
    ],
    ["nothing", [], { content: null }, "stop"],
  ];
  for (const [name, parts, message, finish] of REPLIES) {
    it(name, async (t) => {
      const shown = await answers(t, reply(parts));
      assert.deepEqual(
        [shown.message, shown.finish],
        [{ role: "assistant", reasoning_content: "", ...message }, finish],
      );
      const { reasoning_content: _, ...rest } = shown.message;
      assert.deepEqual((await answers(t, reply(parts), { thinking: null })).message, rest);
    });
  }

  const FINISHES = {
    STOP: "stop",
    OTHER: "stop",
    SOMETHING_NEW: "stop",
    MAX_TOKENS: "length",
    SAFETY: "content_filter",
    RECITATION: "content_filter",
    BLOCKLIST: "content_filter",
    PROHIBITED_CONTENT: "content_filter",
    SPII: "content_filter",
    LANGUAGE: "content_filter",
    IMAGE_SAFETY: "content_filter",
  };
  for (const [reason, finish] of Object.entries(FINISHES)) {
    it(`${reason} is ${finish}`, async (t) =>
      assert.equal((await answers(t, reply([{ text: "Hi." }], reason))).finish, finish));
  }

  for (const reason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"]) {
    it(`${reason} is a failure: hidden by another candidate while that can be`, async (t) => {
      for (const stream of [false, true])
        await refused(t, reply([], reason), { stream, code: "upstream_error" });
      await broken(t, said([], reason), "upstream_error");
    });
  }

  it("a prompt that is blocked", async (t) => {
    const blocked = {
      promptFeedback: { blockReason: "PROHIBITED_CONTENT", safetyRatings: [] },
      usageMetadata: { promptTokenCount: 20, totalTokenCount: 20 },
    };
    const { message, finish, usage } = await answers(t, either(blocked, [blocked]));
    assert.deepEqual(
      [message["content"], finish, usage.prompt_tokens, usage.completion_tokens],
      [null, "content_filter", 20, 0],
    );
    const { gw } = await bench(t, status(200, blocked));
    assert.equal(
      (await json(await gw.chat({ model: "level", messages: user("hi") }))).choices[0].message
        .content,
      "",
    );
    const rated = { promptFeedback: { safetyRatings: [] }, ...said([{ text: "Hi." }], "STOP") };
    assert.equal((await answers(t, either(rated, [rated]))).finish, "stop");
  });

  it("no candidate is a failure, whole and streamed", async (t) => {
    for (const nothing of [{}, { candidates: [] }, { usageMetadata: { promptTokenCount: 20 } }]) {
      for (const stream of [false, true])
        await refused(t, either(nothing, [nothing]), { stream, code: "upstream_error" });
    }
  });

  it("a stream is complete without [DONE], but not without a finishReason", async (t) => {
    await broken(t, said([]), "upstream_error");
    const { gw } = await bench(t, sse([said([{ text: "H" }]), said([{ text: "i." }], "STOP")]));
    const { chunks, done } = await readStream(
      await gw.chat({ model: "level", messages: user("hi"), stream: true }),
    );
    assert.deepEqual([assemble(chunks).message["content"], done], ["Hi.", true]);
  });

  const counts = (prompt: number, completion: number, hit: number, reasoning: number) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    prompt_tokens_details: { cached_tokens: hit },
    completion_tokens_details: { reasoning_tokens: reasoning },
  });
  const USAGES: [name: string, usage: object, counted: object][] = [
    [
      "two counts",
      { promptTokenCount: 20, candidatesTokenCount: 4, totalTokenCount: 24 },
      counts(20, 4, 0, 0),
    ],
    [
      "cached, thought",
      {
        promptTokenCount: 20,
        cachedContentTokenCount: 8,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 3,
        totalTokenCount: 27,
      },
      counts(20, 7, 8, 3),
    ],
    [
      "prompts of tools",
      {
        promptTokenCount: 20,
        toolUsePromptTokenCount: 5,
        candidatesTokenCount: 4,
        totalTokenCount: 29,
      },
      counts(25, 4, 0, 0),
    ],
    ["nothing but thoughts", { promptTokenCount: 20, thoughtsTokenCount: 3 }, counts(20, 3, 0, 3)],
  ];
  for (const [name, usage, counted] of USAGES) {
    it(`usage: ${name}; in a stream the last one counts`, async (t) => {
      const early = {
        promptTokenCount: 20,
        candidatesTokenCount: 1,
        thoughtsTokenCount: 1,
        cachedContentTokenCount: 1,
      };
      const behaviour = either(said([{ text: "Hi." }], "STOP", {}, usage), [
        said([{ text: "H" }], undefined, {}, early),
        said([{ text: "i." }], "STOP", {}, usage),
      ]);
      assert.deepEqual((await answers(t, behaviour)).usage, counted);
    });
  }

  it("log probabilities", async (t) => {
    const token = (text: string, logProbability: number) => ({
      token: text,
      tokenId: 1,
      logProbability,
    });
    const result = (...ranked: Json[][]) => ({
      avgLogprobs: -1,
      logprobsResult: {
        topCandidates: ranked.map((candidates) => ({ candidates })),
        chosenCandidates: ranked.map(([first]) => first),
      },
    });
    const first = [token("\u00d8", -0.1), token("O", -2)];
    const second = [token("l", -0.2)];
    const whole = said(
      [{ text: "Hm.", thought: true }, { text: "\u00d8l" }],
      "STOP",
      result(first, second),
    );
    // The last piece has a token whose text has come already.
    const pieces = [
      said([{ text: "Hm.", thought: true }]),
      said([{ text: "\u00d8l" }], undefined, result(first)),
      said([], "STOP", result(second)),
    ];
    const behaviour = either(whole, pieces);
    const o = { token: "\u00d8", logprob: -0.1, bytes: [195, 152] };
    const l = { token: "l", logprob: -0.2, bytes: [108] };
    const content = [
      { ...o, top_logprobs: [o, { token: "O", logprob: -2, bytes: [79] }] },
      { ...l, top_logprobs: [l] },
    ];
    const asked = await answers(t, behaviour, { logprobs: true, top_logprobs: 2 });
    assert.deepEqual(
      [asked.logprobs.content, asked.streamed, asked.message["content"]],
      [content, content, "\u00d8l"],
    );
    assert.deepEqual(
      [(await answers(t, behaviour)).logprobs, (await answers(t, behaviour)).streamed],
      [null, []],
    );
  });
});

/** Refused with this code, unless another candidate helps. */
async function refused(
  t: TestContext,
  behaviour: Behaviour,
  {
    stream,
    code,
    expected = 503,
  }: { readonly stream: boolean; readonly code: string; readonly expected?: number },
): Promise<Response> {
  const { gw } = await bench(t, behaviour);
  const response = await gw.chat({ model: "level", messages: user("hi"), stream });
  const { error } = await json(response);
  assert.deepEqual(
    [response.status, error?.code, error?.message.includes(OWN_WORDS)],
    [expected, code, false],
  );
  const helped = await gw.chat({ model: "both", messages: user("hi") });
  assert.deepEqual(
    [helped.status, (await json(helped)).model],
    expected === 503 ? [200, "other"] : [400, undefined],
  );
  return response;
}

/** A stream that says "H", then this; no candidate can hide it any more. */
async function broken(t: TestContext, event: object, code: string): Promise<void> {
  for (const model of ["level", "both"]) {
    const { gw } = await bench(t, sse([said([{ text: "H" }]), event]));
    const { chunks, done, error } = await readStream(
      await gw.chat({ model, messages: user("hi"), stream: true }),
    );
    assertSound(chunks, "level", { finished: false });
    assert.deepEqual(
      [assemble(chunks).message["content"], done, error?.code, error?.message.includes(OWN_WORDS)],
      ["H", false, code, false],
    );
  }
}

describe("Gemini's errors", { concurrency: 2 }, () => {
  const google = (code: number, name: string, message = "", details: object[] = []) => ({
    error: { code, message: `${message} ${OWN_WORDS}`, status: name, details },
  });
  const retryInfo = [
    { "@type": "type.googleapis.com/google.rpc.Help", links: [] },
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "17s" },
  ];
  const badKey = [
    {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: "API_KEY_INVALID",
      domain: "googleapis.com",
    },
  ];
  const CASES: [
    status: number,
    body: object,
    code: string,
    expected: number,
    retryAfter?: string,
  ][] = [
    [400, google(400, "INVALID_ARGUMENT"), "upstream_rejected", 400],
    [
      400,
      google(400, "FAILED_PRECONDITION", "This cannot be done in the present state."),
      "upstream_rejected",
      400,
    ],
    [
      400,
      google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
      "model_unavailable",
      503,
    ],
    [
      400,
      google(
        400,
        "INVALID_ARGUMENT",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
      ),
      "context_length_exceeded",
      400,
    ],
    [
      400,
      google(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", badKey),
      "model_unavailable",
      503,
    ],
    [
      400,
      google(400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", badKey),
      "model_unavailable",
      503,
    ],
    [401, google(401, "UNAUTHENTICATED"), "model_unavailable", 503],
    [403, google(403, "PERMISSION_DENIED"), "model_unavailable", 503],
    [404, google(404, "NOT_FOUND"), "model_unavailable", 503],
    [429, google(429, "RESOURCE_EXHAUSTED"), "model_overloaded", 503, "5"],
    [
      429,
      google(429, "RESOURCE_EXHAUSTED", "Quota exceeded.", retryInfo),
      "model_overloaded",
      503,
      "17",
    ],
    [499, google(499, "CANCELLED"), "model_unavailable", 503],
    [500, google(500, "INTERNAL"), "upstream_error", 503],
    [
      503,
      google(503, "UNAVAILABLE", "The model is overloaded.", retryInfo),
      "model_overloaded",
      503,
      "17",
    ],
    [504, google(504, "DEADLINE_EXCEEDED"), "upstream_error", 503],
  ];
  /** Asks a provider that behaves so, whole and streamed. */
  async function assertRefused(
    t: TestContext,
    behaviour: Behaviour,
    [, , code, expected, retryAfter]: (typeof CASES)[number],
  ): Promise<void> {
    for (const stream of [false, true]) {
      const { headers } = await refused(t, behaviour, { stream, code, expected });
      if (retryAfter !== undefined) assert.equal(headers.get("retry-after"), retryAfter);
    }
  }

  for (const row of CASES) {
    const [code, body, word] = row;
    it(`${code} ${Object.values(body)[0].status}: ${word}; bare, in a list, and inside a stream`, async (t) => {
      const forms = [body, [body]].flatMap((given) => [
        status(code, given),
        either(given, [given]),
      ]);
      // The suite tries the error bare and by itself, and in a list inside a stream.
      for (const behaviour of LONG ? forms : [forms[0]!, forms[3]!])
        await assertRefused(t, behaviour, row);
      for (const given of LONG ? [body, [body]] : [body]) await broken(t, given, word);
    });
  }
});
