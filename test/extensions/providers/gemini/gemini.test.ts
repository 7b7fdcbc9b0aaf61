// Requests to Gemini, and the reading of its replies, whole and streamed: wire.md "Gemini requests"
// and "Gemini replies", written again by hand here.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createGeminiDialect } from "../../../../src/extensions/providers/gemini/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { tokenLogprob } from "../../../../src/core/openai/parts.ts";
import { wholeReply } from "../../../../src/core/providers/decoding.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { user } from "../../../support/gateway.ts";
import {
  askedBy,
  calling,
  callOf,
  errorOf,
  replyTo,
  resultOf,
  targetOf,
} from "../dialect-bench.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };
const newDialect = () => createGeminiDialect(createSignatureStore());

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

/**
 * What is sent if the client sets no sampling parameters: the provider's default temperature is 1,
 * its default topP is not.
 */
const SILENT = { topP: 1 };

const MODELS = {
  level: { reasoning: true },
  budget: { reasoning: true, thinking: "budget" },
  plain: {},
  penalised: { omit: [] },
  unsigned: { thinking: "budget" },
  mute: { reasoning: true, thinking: "none" },
  "level-on": { reasoning: true, thinking_off: false },
  "budget-on": { reasoning: true, thinking: "budget", thinking_off: false },
};
const target = (model: string) =>
  targetOf(
    { vendor: "gemini" },
    { upstream_model: `gemini-${model}`, ...MODELS[model as keyof typeof MODELS] },
  );

/** Gemini's request. `dialect`: absent, a new one without memory of earlier replies. */
function ask(fields: Json, dialect = newDialect()): Json {
  const { model = "plain", ...rest } = fields;
  return askedBy(dialect, rest, target(model)).body;
}

/** The reply, which must be the same whole and as these events. */
const answers = (whole: object, events: readonly object[]) =>
  replyTo(newDialect, whole, events, target("level"));
/** The same for these parts, streamed one by one, then the end alone. */
const answersIn = (parts: readonly object[], finishReason = "STOP") =>
  answers(said(parts, finishReason), [
    ...parts.map((part) => said([part])),
    said([], finishReason),
  ]);

const fn = (name: string, more: object = {}) => ({ type: "function", function: { name, ...more } });
const called = (id: string, name = "f", args: object = {}, thoughtSignature?: string) => ({
  functionCall: { id, name, args },
  ...(thoughtSignature && { thoughtSignature }),
});
const answered = (id: string, response: object, name = "f") => ({
  functionResponse: { id, name, response },
});
const says = (role: "user" | "model", ...parts: object[]) => ({ role, parts });
const HI = says("user", { text: "hi" });
/** Stands in for an unknown signature. */
const SKIP = "skip_thought_signature_validator";

describe("what Gemini is sent", () => {
  it("its address, its key, and no unknown field", () => {
    const fields = { user: "alice", parallel_tool_calls: false, reasoning_effort: "high" };
    for (const [stream, method] of [
      [false, "generateContent"],
      [true, "streamGenerateContent?alt=sse"],
    ] as const) {
      assert.deepEqual(askedBy(newDialect(), { stream, ...fields }, target("plain")), {
        path: `/v1beta/models/gemini-plain:${method}`,
        headers: { "x-goog-api-key": PROVIDER_KEY },
        body: { contents: [HI], generationConfig: SILENT },
      });
    }
  });

  const media = (part: object) => [
    { role: "user", content: [{ type: "text", text: "see" }, part] },
  ];
  const image = (url: string) => media({ type: "image_url", image_url: { url } });
  const system = (content: string) => ({ role: "system", content });
  const inline = (mimeType: string) => [
    says("user", { text: "see" }, { inlineData: { mimeType, data: "AA==" } }),
  ];
  const far = (name: string, mimeType: string) => [
    says("user", { text: "see" }, { fileData: { fileUri: `https://x.test/${name}`, mimeType } }),
  ];
  const CONVERSATIONS: [name: string, messages: object[], contents: object[], system?: string][] = [
    [
      "system texts from everywhere",
      [system("a"), ...user("hi"), { role: "developer", content: "b" }, system(" ")],
      [HI],
      "a\n\nb",
    ],
    ["an image in the request", image("data:image/png;base64,AA=="), inline("image/png")],
    ["an image elsewhere", image("https://x.test/a.webp?b"), far("a.webp?b", "image/webp")],
    ["an image of PNG", image("https://x.test/a.PNG"), far("a.PNG", "image/png")],
    ["an image of HEIC", image("https://x.test/a.heic#x"), far("a.heic#x", "image/heic")],
    ["an image of a name without a type", image("https://x.test/a"), far("a", "image/jpeg")],
    [
      "sound",
      media({ type: "input_audio", input_audio: { data: "AA==", format: "mp3" } }),
      inline("audio/mp3"),
    ],
    [
      "calls and results, whatever they hold",
      [
        ...user("hi"),
        {
          ...calling(callOf("a", "f", '{"x":1}'), callOf("b", "g", ""), callOf("c", "g", "oops")),
          content: "See:",
        },
        resultOf("b", '{"$ref":"#/x"}'),
        resultOf("a", '{"y":2}'),
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
        ),
        says(
          "user",
          answered("a", { y: 2 }),
          answered("b", { result: '{"$ref":"#/x"}' }, "g"),
          answered("c", { result: "" }, "g"),
          { text: "so" },
        ),
      ],
    ],
  ];
  for (const [name, messages, contents, system] of CONVERSATIONS)
    it(name, () =>
      assert.deepEqual(ask({ model: "unsigned", messages }), {
        ...(system && { systemInstruction: { parts: [{ text: system }] } }),
        contents,
        generationConfig: SILENT,
      }),
    );

  it("signatures are sent back with their calls; unknown ones get a placeholder where they are required", () => {
    const messages = [
      ...user("hi"),
      calling(callOf("a"), callOf("b", "g")),
      resultOf("a", "1"),
      resultOf("b", "2"),
      calling(callOf("c"), callOf("d")),
      resultOf("c", "3"),
      resultOf("d", "4"),
    ];
    const contents = (first?: string, second?: string) => [
      HI,
      says("model", called("a", "f", {}, first), called("b", "g")),
      says("user", answered("a", { result: "1" }), answered("b", { result: "2" }, "g")),
      says("model", called("c", "f", {}, second), called("d")),
      says("user", answered("c", { result: "3" }), answered("d", { result: "4" })),
    ];
    for (const model of ["level", "plain"])
      assert.deepEqual(ask({ model, messages })["contents"], contents(SKIP, SKIP), model);
    for (const model of ["budget", "mute"])
      assert.deepEqual(ask({ model, messages })["contents"], contents(), model);
    for (const [signs, signed, other, unsigned] of [
      ["level", contents("c2ln", SKIP), "budget", contents()],
      ["budget", contents("c2ln"), "level", contents(SKIP, SKIP)],
    ] as const) {
      const dialect = newDialect();
      const { push } = dialect.decoder(target(signs));
      push(said([{ text: "Hm.", thought: true, thoughtSignature: "c2ln" }]));
      push(said([called("a"), called("b", "g")], "STOP"));
      const known = (model: string) => ask({ model, messages }, dialect)["contents"];
      assert.deepEqual(known(signs), signed);
      assert.deepEqual(known(other), unsigned, "other models may refuse it");
    }
  });

  for (const message of [
    "Corrupted thought signature.",
    "Invalid thought signature.",
    "Unable to submit request because Thought signature is not valid.",
  ])
    it(`a signature is left out of the next attempt after ${message}`, () => {
      const dialect = newDialect();
      const messages = [...user("hi"), calling(callOf("a")), resultOf("a", "1")];
      const sent = () => ask({ model: "level", messages }, dialect)["contents"][1];
      const error = google(400, "INVALID_ARGUMENT", message);
      const refused = () => dialect.refusal(400, { get: () => null }, error).code;
      assert.deepEqual(sent(), says("model", called("a", "f", {}, SKIP)));
      assert.equal(refused(), "upstream_rejected", "none was sent");
      dialect.decoder(target("level")).push(said([called("a", "f", {}, "c2ln")], "STOP"));
      assert.deepEqual(sent(), says("model", called("a", "f", {}, "c2ln")));
      assert.equal(refused(), "upstream_error", "the gateway asks again");
      assert.deepEqual(sent(), says("model", called("a", "f", {}, SKIP)));
    });

  it("the names of functions begin with a letter or an underscore", () => {
    const messages = [...user("hi"), calling(callOf("a", "1st")), resultOf("a", "1")];
    const choice = { messages, tools: [fn("1st"), fn("_-f"), fn("_g")], tool_choice: fn("1st") };
    const { contents, tools, toolConfig } = ask({ model: "unsigned", ...choice });
    const back = says("user", answered("a", { result: "1" }, "_1st"));
    assert.deepEqual(contents.slice(1), [says("model", called("a", "_1st")), back]);
    const names = tools[0].functionDeclarations.map(({ name }: Json) => name);
    assert.deepEqual(names, ["_1st", "__-f", "_g"]);
    assert.deepEqual(toolConfig.functionCallingConfig.allowedFunctionNames, ["_1st"]);
  });

  it("calls and results have no ids where they are rejected", () => {
    const messages = [...user("hi"), calling(callOf("a")), resultOf("a", "1")];
    const vertex = targetOf({ vendor: "vertex", dialect: "gemini" });
    const { contents } = askedBy(newDialect(), { messages }, vertex).body;
    assert.deepEqual(contents.slice(1), [
      says("model", { functionCall: { name: "f", args: {} }, thoughtSignature: SKIP }),
      says("user", { functionResponse: { name: "f", response: { result: "1" } } }),
    ]);
  });

  it("a call without an id gets one, by which its signature is found again", () => {
    const dialect = newDialect();
    const part = { functionCall: { name: "f" }, thoughtSignature: "c2ln" };
    const [given] = wholeReply(dialect, said([part], "STOP"), target("level"));
    assert.ok(given?.type === "tool_call");
    const messages = [...user("hi"), calling(callOf(given.id)), resultOf(given.id, "1")];
    const { contents } = ask({ model: "level", messages }, dialect);
    assert.deepEqual(contents[1], says("model", called(given.id, "f", {}, "c2ln")));
  });

  const parameters = {
    type: "object",
    properties: { city: { type: "string" } },
    additionalProperties: false,
  };
  const TOOLS = [fn("f", { description: "Clock", parameters, strict: true }), fn("g")];
  const functionDeclarations = [
    { name: "f", description: "Clock", parametersJsonSchema: parameters },
    { name: "g", parametersJsonSchema: { type: "object" } },
  ];
  const chosen = (functionCallingConfig: object) => ({
    tools: [{ functionDeclarations }],
    toolConfig: { functionCallingConfig },
  });
  const NUMBERS = { temperature: 1.5, seed: 7 };
  const PENALTIES = { frequency_penalty: 0.5, presence_penalty: -0.5 };
  const SAID = { ...NUMBERS, ...PENALTIES, top_p: 0.9, max_tokens: 100, stop: "END" };
  const SENT = { topP: 0.9, maxOutputTokens: 100, stopSequences: ["END"] };
  const SENT_PENALTIES = { frequencyPenalty: 0.5, presencePenalty: -0.5 };
  const schema = { type: "object", properties: {} };
  const json = (json_schema: object) => ({ response_format: { type: "json_schema", json_schema } });
  /** An answer of one of two kinds, and a member that is named like the keyword. */
  const kinds = (demanding: (kind: string) => object) => ({
    anyOf: ["a", "b"].map((kind) => ({
      type: "object",
      properties: {
        kind: { type: "string", ...demanding(kind) },
        const: demanding("c"),
        n: { const: 1 },
      },
    })),
    examples: [{ const: "x" }],
  });
  const ofKinds = json({ name: "x", schema: kinds((kind) => ({ const: kind })) });
  const listed = kinds((kind) => ({ enum: [kind] }));
  const JSON_TYPE = { responseMimeType: "application/json" };
  const choose = (tool_choice?: unknown) => ({ tools: TOOLS, tool_choice });
  const FIELDS: [model: string, fields: object, config: object, more?: object][] = [
    ["penalised", SAID, { ...NUMBERS, ...SENT, ...SENT_PENALTIES }],
    ["plain", { logprobs: true, top_logprobs: 2 }, { responseLogprobs: true, logprobs: 2 }],
    ["plain", { temperature: 0, top_p: 0 }, { temperature: 0, topP: 0 }],
    ["plain", { logprobs: true }, { responseLogprobs: true }],
    ["plain", { stop: [], top_logprobs: 2, response_format: { type: "text" } }, {}],
    ["plain", { response_format: { type: "json_object" } }, JSON_TYPE],
    ["plain", json({ name: "x", schema }), { ...JSON_TYPE, responseJsonSchema: schema }],
    ["plain", json({ name: "x" }), JSON_TYPE],
    ["plain", ofKinds, { ...JSON_TYPE, responseJsonSchema: listed }],
    ["plain", choose(), {}, chosen({ mode: "NONE" })],
    ["plain", choose("none"), {}, chosen({ mode: "NONE" })],
    ["plain", choose("auto"), {}, chosen({ mode: "AUTO" })],
    ["plain", choose("required"), {}, chosen({ mode: "ANY" })],
    ["plain", choose(fn("g")), {}, chosen({ mode: "ANY", allowedFunctionNames: ["g"] })],
    ["plain", { tools: [], tool_choice: "none" }, {}],
  ];
  for (const [model, fields, config, more] of FIELDS)
    it(JSON.stringify(fields).slice(0, 100), () => {
      const generationConfig = { ...SILENT, ...config };
      assert.deepEqual(ask({ model, ...fields }), { contents: [HI], generationConfig, ...more });
    });

  it("thinking: by level, by budget, on, off, as little as possible, and none", () => {
    const shown = (config: object) => ({ includeThoughts: true, ...config });
    const hidden = (config: object) => ({ includeThoughts: false, ...config });
    const off = { thinking: { type: "disabled" }, reasoning_effort: "high" };
    const effort = (reasoning_effort: string) => ({ reasoning_effort });
    const CASES: [model: string, fields: object, thinkingConfig?: object][] = [
      ["level", {}, hidden({ thinkingLevel: "MINIMAL" })],
      ["level-on", {}, hidden({ thinkingLevel: "LOW" })],
      ["budget", {}, hidden({ thinkingBudget: 0 })],
      ["budget-on", {}, hidden({ thinkingBudget: 128 })],
      ["level", effort("none"), hidden({ thinkingLevel: "MINIMAL" })],
      ["budget", off, hidden({ thinkingBudget: 0 })],
      // An effort alone requests thinking, but not its text.
      ["level", effort("high"), hidden({ thinkingLevel: "HIGH" })],
      ["budget", effort("low"), hidden({ thinkingBudget: 1024 })],
      ["level", ON, shown({})],
      ["budget", ON, shown({ thinkingBudget: -1 })],
      ["level-on", { ...ON, ...effort("medium") }, shown({ thinkingLevel: "MEDIUM" })],
      ["budget-on", { ...ON, ...effort("medium") }, shown({ thinkingBudget: 8192 })],
      ["level", { ...ON, ...effort("minimal") }, shown({ thinkingLevel: "LOW" })],
      ["level", { ...ON, ...effort("max") }, shown({ thinkingLevel: "HIGH" })],
      ["budget", { ...ON, ...effort("minimal") }, shown({ thinkingBudget: 1024 })],
      ["budget", { ...ON, ...effort("xhigh") }, shown({ thinkingBudget: 24_576 })],
      ["plain", { ...ON, ...effort("high") }],
      ["mute", ON],
      ["mute", {}],
    ];
    for (const [model, fields, thinkingConfig] of CASES)
      assert.deepEqual(
        ask({ model, ...fields })["generationConfig"],
        { ...SILENT, ...(thinkingConfig && { thinkingConfig }) },
        `${model} ${JSON.stringify(fields)}`,
      );
  });
});

describe("how Gemini's replies are read", () => {
  const THOUGHTS = ["Let ", "me."].map((text) => ({ text, thought: true }));
  const f = ["a", "f", '{"x":"\u00d8"}'];
  const g = ["generated", "g", "{}"];
  const F = called("a", "f", { x: "\u00d8" }, "c2ln");
  const G = { name: "g", args: {} };
  const NEW = { somethingNew: {} };
  const IMAGE = { inlineData: { mimeType: "image/png", data: "AA==" } };
  const signed = (part: object) => ({ ...part, thoughtSignature: "c2ln" });
  const REPLIES: [name: string, parts: object[], expected: object][] = [
    ["a text in pieces", [{ text: "Hel" }, { text: "" }, { text: "lo." }], { text: "Hello." }],
    ["thoughts, then text", [...THOUGHTS, { text: "Hi." }], { text: "Hi.", reasoning: "Let me." }],
    [
      "a signature on a text, and one on nothing",
      [signed({ text: "Hi." }), signed({ text: "" })],
      { text: "Hi." },
    ],
    [
      "parts of Gemini's own tools are dropped, unknown ones become text",
      [{ executableCode: { code: "1" } }, { text: "Hi." }, NEW],
      { text: `Hi.${JSON.stringify(NEW)}` },
    ],
    ["an image and no text", [signed(IMAGE)], { text: JSON.stringify(IMAGE) }],
    [
      "thoughts, text and calls at once, one of them without an id and arguments",
      [...THOUGHTS, { text: "So:" }, F, { functionCall: { name: "g" } }],
      { text: "So:", reasoning: "Let me.", calls: [f, g] },
    ],
    [
      "calls of functions whose names Gemini rejects get the client's names back",
      [called("b", "_1st"), called("c", "__-f"), called("d", "_g")],
      {
        calls: [
          ["b", "1st"],
          ["c", "_-f"],
          ["d", "_g"],
        ].map((call) => [...call, "{}"]),
      },
    ],
    [
      "calls without ids, of one function",
      [{ functionCall: G }, { functionCall: { id: "", ...G, args: null } }],
      { calls: [g, g] },
    ],
    [
      "calls with one id: the second gets another",
      [F, F],
      { calls: [f, ["generated", ...f.slice(1)]] },
    ],
    ["nothing", [], {}],
  ];
  for (const [name, parts, expected] of REPLIES)
    it(name, () => {
      const { usage: _, ...reply } = answersIn(parts);
      const finish = "calls" in expected ? "tool_calls" : "stop";
      assert.deepEqual(reply, { text: "", reasoning: "", calls: [], ...expected, finish });
    });

  it("a prompt that is blocked", () => {
    const blocked = {
      promptFeedback: { blockReason: "PROHIBITED_CONTENT", safetyRatings: [] },
      usageMetadata: { promptTokenCount: 20, totalTokenCount: 20 },
    };
    const { text, finish, usage } = answers(blocked, [blocked]);
    assert.deepEqual([text, finish, usage.prompt_tokens], ["", "content_filter", 20]);
    const armoured = { promptFeedback: { blockReason: "MODEL_ARMOR" } };
    assert.equal(answers(armoured, [armoured]).finish, "content_filter");
    const rated = { promptFeedback: { safetyRatings: [] }, ...said([{ text: "Hi." }], "STOP") };
    assert.equal(answers(rated, [rated]).finish, "stop");
  });

  for (const candidate of [{ finishReason: "SAFETY" }, { finishReason: "SPII", content: null }])
    it(`a candidate whose content a filter removed: ${JSON.stringify(candidate)}`, () => {
      const filtered = { candidates: [candidate] };
      const { text, finish } = answers(filtered, [filtered]);
      assert.deepEqual([text, finish], ["", "content_filter"]);
    });

  it("a body without a candidate is not a reply", () => {
    for (const nothing of [{}, { candidates: [] }, { usageMetadata: { promptTokenCount: 20 } }])
      assert.equal(errorOf(() => answers(nothing, [])).code, "upstream_error");
  });

  const TWO = { promptTokenCount: 20, candidatesTokenCount: 4 };
  const THOUGHT = { ...TWO, cachedContentTokenCount: 8, thoughtsTokenCount: 3 };
  const plain = { prompt: 20, completion: 4, cacheHit: 0, reasoning: 0 };
  const USAGES: [name: string, usage: object, counted: typeof plain][] = [
    ["two counts", { ...TWO, totalTokenCount: 24 }, plain],
    ["cached, thought", THOUGHT, { prompt: 20, completion: 7, cacheHit: 8, reasoning: 3 }],
    ["prompts of tools", { ...TWO, toolUsePromptTokenCount: 5 }, { ...plain, prompt: 25 }],
    [
      "nothing but thoughts",
      { promptTokenCount: 20, thoughtsTokenCount: 3 },
      { ...plain, completion: 3, reasoning: 3 },
    ],
  ];
  for (const [name, usage, counted] of USAGES)
    it(`usage: ${name}; in a stream the last one counts`, () => {
      const early = Object.fromEntries(Object.keys(usage).map((count) => [count, 1]));
      const reply = answers(said([{ text: "Hi." }], "STOP", {}, usage), [
        said([{ text: "H" }], undefined, {}, early),
        said([{ text: "i." }], "STOP", {}, usage),
      ]);
      assert.deepEqual(reply.usage, makeUsage(counted));
    });

  it("a count that later events omit keeps its last value, unless text follows it", () => {
    const decoder = newDialect().decoder(target("plain"));
    const completionAfter = (text: string, candidatesTokenCount?: number, more: object = {}) => {
      const parts = text === "" ? [] : [{ text }];
      const usage = { promptTokenCount: 20, candidatesTokenCount, ...more };
      const read = decoder.push(said(parts, undefined, {}, usage));
      const part = read.find(({ type }) => type === "usage");
      return part?.type === "usage" ? [part.usage.completion, part.usage.reasoning] : [];
    };
    assert.deepEqual(completionAfter("H", 9, { thoughtsTokenCount: 4 }), [13, 4]);
    assert.deepEqual(completionAfter("i.", 12), [16, 4]);
    assert.deepEqual(completionAfter(""), [16, 4]);
    assert.deepEqual(completionAfter("More."), [undefined, 4]);
  });

  it("log probabilities belong to the text, and those of reasoning alone are dropped", () => {
    const token = (text: string, logProbability: number) => ({ token: text, logProbability });
    const first = [token("\u00d8", -0.1), token("O", -2)];
    const topCandidates = [{ candidates: first }];
    const more = { logprobsResult: { topCandidates, chosenCandidates: first.slice(0, 1) } };
    const read = (parts: object[]) =>
      wholeReply(newDialect(), said(parts, "STOP", more), target("level")).flatMap((part) =>
        "logprobs" in part ? (part.logprobs ?? []) : [],
      );
    const top = { token: "\u00d8", logprob: -0.1, bytes: [195, 152] };
    const top_logprobs = [top, { token: "O", logprob: -2, bytes: [79] }];
    const expected = tokenLogprob({ ...top, top_logprobs });
    const thought = { text: "Hm.", thought: true };
    assert.deepEqual(read([thought, { text: "\u00d8" }]), [expected]);
    assert.deepEqual(read([]), [expected]);
    assert.deepEqual(read([thought]), []);
  });

  it("the bytes of a token of a megabyte are not listed", () => {
    const decoder = newDialect().decoder(target("plain"));
    const bytesOf = (token: string) => {
      const logprobsResult = { chosenCandidates: [{ token, logProbability: -1 }] };
      const parts = decoder.push(said([{ text: "x" }], undefined, { logprobsResult }));
      return parts.flatMap((part) => (part.type === "text" ? (part.logprobs ?? []) : []))[0]?.bytes;
    };
    assert.deepEqual(bytesOf("hi"), [104, 105]);
    assert.equal(bytesOf("x".repeat(1024 * 1024)), null);
  });
});

const google = (code: number, status: string, message = "", details: object[] = []) => ({
  error: { code, message, status, details },
});
const detail = (type: string, more: object) => ({
  "@type": `type.googleapis.com/google.rpc.${type}`,
  ...more,
});
const retryInfo = [detail("Help", { links: [] }), detail("RetryInfo", { retryDelay: "17s" })];
const badKey = [detail("ErrorInfo", { reason: "API_KEY_INVALID" })];
const TOO_LONG = "The input token count (9) exceeds the maximum number of tokens allowed (8).";
const EXPIRED = "API key expired. Please renew the API key.";
const PLACE = "User location is not supported for the API use.";
const CASES: [status: number, body: object, code: string, retryAfterMs?: number][] = [
  [400, google(400, "FAILED_PRECONDITION", PLACE), "model_unavailable"],
  [400, google(400, "INVALID_ARGUMENT", TOO_LONG), "context_length_exceeded"],
  [400, google(400, "INVALID_ARGUMENT", EXPIRED, badKey), "model_unavailable"],
  [429, google(429, "RESOURCE_EXHAUSTED", "No.", retryInfo), "model_overloaded", 17_000],
  [499, google(499, "CANCELLED"), "model_overloaded"],
];
for (const [status, body, code, retryAfterMs] of CASES)
  it(`Gemini's error ${status} ${Object.values(body)[0].status}: ${code}; bare, in a list, and inside a stream`, () => {
    const { refusal, decoder } = newDialect();
    for (const given of [body, [body]]) {
      const refused = refusal(status, { get: () => null }, given);
      assert.deepEqual([refused.code, refused.detail.retryAfterMs], [code, retryAfterMs]);
      assert.equal(errorOf(() => decoder(target("level")).push(given)).code, code);
    }
  });
