// What each vendor of OpenAI-compatible models is sent and never sent: its row of providers.md,
// written again by hand here. Then settings of a provider or a model that override the vendor's.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { usableId } from "../../../../src/extensions/providers/provider-words/index.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { requirementsOf } from "../../../../src/extensions/routing/capabilities/requirements.ts";
import { user } from "../../../support/gateway.ts";
import { calledOf, resultOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };
const fn = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
});
const TOOLS = [fn("f"), fn("g")];
const named = (name: string) => ({ type: "function", function: { name } });
const SCHEMA = { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } };

/** All fields that a client can send, except those with a table below. */
const ALL = {
  temperature: 1.5,
  top_p: 0.9,
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  max_tokens: 100,
  stop: ["END"],
  seed: 7,
  user: "alice",
  tools: TOOLS,
  tool_choice: "auto",
  parallel_tool_calls: false,
  response_format: SCHEMA,
  logprobs: true,
  top_logprobs: 2,
};
/** Fields that are never passed on. */
const NOISE = { metadata: { a: "b" }, store: true, n: 1, enable_thinking: true };
/** Fields that are passed on to vendors that take them. */
const FURTHER = {
  logit_bias: { 1: 1 },
  verbosity: "low",
  prompt_cache_key: "k",
  prompt_cache_retention: "24h",
};
const PSEUDONYM = createHash("sha256").update("alice").digest("hex").slice(0, 32);

interface Row {
  /** Where the sent fields differ from the client's. Null: the field is not sent. */
  readonly sent?: Json;
  /** The same for reasoning models, in addition to `sent`. */
  readonly thinker?: Json;
  /** Which of FURTHER are sent; for reasoning models separately if they differ. Absent: none. */
  readonly takes?: readonly (keyof typeof FURTHER)[];
  readonly thinkerTakes?: readonly (keyof typeof FURTHER)[];
  /**
   * What no model of the vendor supports, and what its reasoning models do not support in addition.
   */
  readonly refused?: readonly (keyof typeof NEEDS)[];
  readonly thinkerRefused?: readonly (keyof typeof NEEDS)[];
  /** Without thinking; with thinking; with each of DEPTHS, if that differs. */
  readonly off: Json;
  readonly on: Json;
  readonly deep?: readonly Json[];
  /** The vendor sends a stream's usage unasked. */
  readonly usageUnasked?: true;
  /** What is sent for an absent temperature and top_p. Absent: both as 1. */
  readonly silent?: Json;
  readonly choices?: "required" | "any" | "auto";
  /** The field in which thinking is sent back with tool calls. In `content` it is a part. */
  readonly echo?: string;
  /** What that field has in a message without thinking. "": there is no field. Absent: a blank. */
  readonly blank?: "";
  /** The content of calls without text. Absent: null. */
  readonly noText?: "";
}

/** What a request may need and some vendors lack. */
const NEEDS = {
  stop: { stop: "END" },
  frequency_penalty: { frequency_penalty: 0.1 },
  presence_penalty: { presence_penalty: -0.1 },
  required: { tools: TOOLS, tool_choice: "required" },
  named: { tools: TOOLS, tool_choice: named("g") },
  tools: { tools: TOOLS },
  logprobs: { logprobs: true },
  json_object: { response_format: { type: "json_object" } },
  json_schema: { response_format: SCHEMA },
} as const;
const PENALTIES = ["frequency_penalty", "presence_penalty"] as const;
const DEPTHS = ["low", "medium", "xhigh"] as const;
/** The contract's defaults of both. */
const SILENT = { temperature: 1, top_p: 1 };

const renamed = { max_tokens: null, max_completion_tokens: 100 };
const effort = (reasoning_effort: string) => ({ reasoning_effort });
type Efforts = readonly [low: string, medium: string, xhigh: string];
const SAME: Efforts = ["low", "medium", "xhigh"];
const deepWith = (efforts: Efforts, more: Json = {}) => ({
  deep: efforts.map((name) => ({ ...more, ...effort(name) })),
});
/** Thinking is set by its effort. `on`: the effort if the client states none. */
const byEffort = (on: string, efforts: Efforts) => ({
  off: effort("none"),
  on: effort(on),
  ...deepWith(efforts),
});
const byType = { off: { thinking: { type: "disabled" } }, on: ON };
const byReasoning = {
  off: { reasoning: { enabled: false } },
  on: { reasoning: { enabled: true } },
};
const template = (on: boolean) => ({ chat_template_kwargs: { enable_thinking: on, thinking: on } });
const byTemplate = {
  off: template(false),
  on: template(true),
  ...deepWith(SAME, template(true)),
  takes: ["logit_bias"],
  blank: "",
} as const;

/** The settings of Kimi K3. */
const K3 = { thinking: "reasoning_effort", efforts: ["low", "high", "max"], thinking_off: false };

const ROWS: Record<string, Row> = {
  generic: { off: {}, on: {} },
  openai: {
    ...byEffort("medium", SAME),
    takes: ["logit_bias", "verbosity", "prompt_cache_key", "prompt_cache_retention"],
    thinkerTakes: ["verbosity", "prompt_cache_key", "prompt_cache_retention"],
    silent: {},
    sent: renamed,
    thinker: { temperature: null, top_p: null },
    thinkerRefused: [...PENALTIES, "logprobs"],
  },
  deepseek: {
    ...byType,
    ...deepWith(["low", "high", "max"], ON),
    silent: {},
    refused: ["json_schema"],
    echo: "reasoning_content",
  },
  mistral: {
    ...byEffort("high", ["high", "high", "high"]),
    takes: ["prompt_cache_key"],
    silent: { temperature: 1 },
    sent: { seed: null, random_seed: 7, user: null },
    refused: ["logprobs"],
    usageUnasked: true,
    choices: "any",
    echo: "content",
    blank: "",
  },
  groq: {
    ...byEffort("medium", ["low", "medium", "high"]),
    silent: {},
    sent: renamed,
    thinker: { reasoning_format: "parsed" },
    refused: ["logprobs"],
    echo: "reasoning",
    blank: "",
  },
  openrouter: {
    ...byReasoning,
    deep: SAME.map((effort) => ({ reasoning: { effort } })),
    takes: ["logit_bias"],
    silent: {},
  },
  together: {
    ...byReasoning,
    takes: ["logit_bias"],
    sent: { user: null, parallel_tool_calls: null },
    refused: ["logprobs"],
    echo: "reasoning",
    blank: "",
  },
  nvidia: { ...byTemplate, takes: [], sent: { user: null }, echo: "reasoning_content" },
  deepinfra: {
    ...byEffort("medium", ["low", "medium", "high"]),
    takes: ["prompt_cache_key"],
    sent: { parallel_tool_calls: null },
    refused: ["logprobs"],
    echo: "reasoning_content",
    blank: "",
  },
  vllm: { ...byTemplate, echo: "reasoning" },
  sglang: { ...byTemplate, thinker: { separate_reasoning: true }, echo: "reasoning_content" },
  "llama.cpp": { ...byTemplate, choices: "required", echo: "reasoning_content" },
  lmstudio: { off: {}, on: {}, refused: ["logprobs", "json_object"], choices: "required" },
  cerebras: {
    ...byEffort("medium", ["low", "medium", "high"]),
    takes: ["prompt_cache_key"],
    silent: {},
    sent: renamed,
    refused: PENALTIES,
    echo: "reasoning",
    blank: "",
  },
  fireworks: {
    ...byEffort("medium", ["low", "medium", "high"]),
    takes: ["logit_bias", "prompt_cache_key"],
    echo: "reasoning_content",
    blank: "",
  },
  ollama: {
    off: effort("none"),
    on: {},
    refused: ["required", "named", "logprobs"],
    choices: "auto",
    echo: "reasoning",
    blank: "",
  },
  qwen: {
    noText: "",
    off: { enable_thinking: false },
    on: { enable_thinking: true },
    echo: "reasoning_content",
    blank: "",
  },
  moonshot: {
    ...byType,
    takes: ["prompt_cache_key"],
    silent: {},
    sent: { ...renamed, temperature: null, top_p: null },
    refused: [...PENALTIES, "logprobs"],
    echo: "reasoning_content",
  },
  zhipu: {
    ...byType,
    sent: { temperature: 1, seed: null, user: null, parallel_tool_calls: null },
    refused: [...PENALTIES, "required", "named", "logprobs", "json_schema"],
    usageUnasked: true,
    choices: "auto",
    echo: "reasoning_content",
  },
  "gemini-openai": {
    ...byEffort("medium", ["low", "medium", "high"]),
    silent: { top_p: 1 },
    sent: { seed: null, user: null, parallel_tool_calls: null },
    refused: [...PENALTIES, "logprobs"],
  },
  xai: {
    ...byEffort("medium", ["low", "medium", "high"]),
    silent: {},
    sent: renamed,
    refused: PENALTIES,
    thinkerRefused: ["stop"],
  },
};

/**
 * A model of each kind at each vendor: with thinking, without thinking, and with thinking that
 * cannot be disabled.
 */
const KINDS = {
  thinker: { reasoning: true },
  plain: { reasoning: false },
  stubborn: { reasoning: true, thinking_off: false },
};
type Kind = keyof typeof KINDS;

/** The request for a model with these settings. Every request has the usual tool_choice. */
function sent(provider: object, model: Parameters<typeof targetOf>[1], fields: object): Json {
  const target = targetOf(provider, model);
  const { tool_choice = "none", ...chat } = chatRequest({
    model: "x",
    messages: user("hi"),
    ...fields,
  });
  const { body } = compatibleDialect.request({ ...chat, tool_choice, extras: FURTHER }, target);
  return JSON.parse(JSON.stringify({ ...body, ...target.traits.extra })) as Json;
}

/** The same without the fields of every request, for a kind of models or for these settings. */
function asked(vendor: string, kind: Kind | object, fields: object): Json {
  const settings = typeof kind === "string" ? KINDS[kind] : kind;
  const { model, messages, ...rest } = sent({ vendor, dialect: "openai" }, settings, fields);
  assert.ok(model === "m" && messages.length > 0);
  for (const name of Object.keys(FURTHER)) if (!("temperature" in fields)) delete rest[name];
  return rest;
}

/** The fields of `all`, the later ones taking precedence, without those that are null. */
const changed = (...all: Json[]): Json =>
  Object.fromEntries(
    Object.entries(Object.assign({}, ...all)).filter(([, value]) => value !== null),
  );
const only = (fields: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, fields[name]]));
/** The fields without those that these needs concern. Tools stay. */
const without = (fields: Json, refused: readonly (keyof typeof NEEDS)[]): Json => {
  const gone = refused.flatMap((need) => ("tools" in NEEDS[need] ? [] : Object.keys(NEEDS[need])));
  if (refused.includes("logprobs")) gone.push("top_logprobs");
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !gone.includes(name)));
};

/** What is sent for each tool_choice, by the forms that the vendor supports. */
function choicesOf(known: Row["choices"]): [choice: Json, out: Json][] {
  const automatic: [Json, Json] = [{ tool_choice: "auto" }, { tools: TOOLS, tool_choice: "auto" }];
  if (known === "auto") return [[{}, {}], automatic];
  const required = { tools: TOOLS, tool_choice: known ?? "required" };
  const one = known
    ? { tools: [fn("g")], tool_choice: known }
    : { tools: TOOLS, tool_choice: named("g") };
  return [
    [{}, { tools: TOOLS, tool_choice: "none" }],
    automatic,
    [{ tool_choice: "required" }, required],
    [{ tool_choice: named("g") }, one],
  ];
}

/** What is sent if thinking is requested. An effort alone requests it too. */
const thinkingOf = ({ on, deep = [on, on, on] }: Row): [fields: Json, out: Json][] => [
  [ON, on],
  [{ ...ON, ...effort("none") }, on],
  ...DEPTHS.map((depth, at): [Json, Json] => [{ ...ON, ...effort(depth) }, deep[at]!]),
  ...DEPTHS.map((depth, at): [Json, Json] => [effort(depth), deep[at]!]),
];

describe("what a vendor is sent", () => {
  for (const [vendor, row] of Object.entries(ROWS)) {
    const { thinker = {}, takes = [], thinkerTakes = takes, refused = [], choices } = row;
    const { off, on, silent = SILENT, thinkerRefused = [], echo: field, blank = " " } = row;
    const lacks = (kind: Kind) => [...refused, ...(kind === "plain" ? [] : thinkerRefused)];
    const provider = { vendor, dialect: "openai" };
    /** What is sent if the client sets nothing. */
    const quiet = (kind: Kind): Json => changed(silent, kind === "plain" ? {} : thinker);

    it(`${vendor}: all fields at once, whole and streamed`, () => {
      for (const [kind, taken, more] of [
        ["thinker", thinkerTakes, { ...thinker, ...on }],
        ["plain", takes, {}],
      ] as const) {
        const can = without(ALL, lacks(kind));
        const further = only(FURTHER, taken);
        const out = changed(can, { user: PSEUDONYM }, row.sent ?? {}, more, further);
        const fields = { temperature: 1.5, ...can, ...NOISE, ...ON };
        assert.deepEqual(asked(vendor, kind, fields), out);
        const usage = row.usageUnasked ? {} : { stream_options: { include_usage: true } };
        const streamed = asked(vendor, kind, { ...fields, stream: true });
        assert.deepEqual(streamed, { ...out, stream: true, ...usage });
      }
    });

    it(`${vendor}: tool_choice`, () => {
      for (const [choice, out] of choicesOf(choices)) {
        const sent = asked(vendor, "plain", { tools: TOOLS, ...choice });
        assert.deepEqual(sent, { ...silent, ...out });
      }
      assert.deepEqual(asked(vendor, "plain", { tools: [] }), silent);
    });

    it(`${vendor}: thinking off, on, and its effort`, () => {
      for (const fields of [{}, { thinking: { type: "disabled" }, reasoning_effort: "high" }]) {
        assert.deepEqual(asked(vendor, "thinker", fields), { ...quiet("thinker"), ...off });
        assert.deepEqual(asked(vendor, "stubborn", fields), quiet("stubborn"));
      }
      assert.deepEqual(asked(vendor, "plain", { ...ON, reasoning_effort: "high" }), silent);
      // An effort alone also requests thinking.
      for (const [fields, out] of thinkingOf(row))
        for (const kind of ["thinker", "stubborn"] as const)
          assert.deepEqual(asked(vendor, kind, fields), { ...quiet(kind), ...out });
    });

    it(`${vendor}: tool calls sent back, with thinking or without`, () => {
      const given = turns({ reasoning_content: "hm" }, {}, { reasoning_content: "aha" });
      const call = { content: row.noText ?? null };
      const bare = turns(call, call, {});
      function echo(thought: string, ...texts: Json[]): Json {
        if (!field || !thought) return {};
        const thinking = [{ type: "text", text: thought }];
        const parts = [{ type: "thinking", thinking, closed: true }, ...texts];
        return { [field]: field === "content" ? parts : thought };
      }
      const echoed = turns(
        { ...call, ...echo("hm") },
        { ...call, ...echo(blank) },
        echo("aha", { type: "text", text: "so" }),
      );
      for (const [kind, fields, out] of [
        ["thinker", ON, echoed],
        ["thinker", {}, bare],
        ["plain", ON, bare],
        ["stubborn", ON, echoed],
        ["stubborn", {}, echoed],
      ] as const) {
        const { messages } = sent(provider, KINDS[kind], { messages: given, ...fields });
        assert.deepEqual(messages, out);
      }
    });

    it(`${vendor}: unsupported features, and fields without effect`, () => {
      for (const kind of ["thinker", "plain"] as const) {
        const { traits } = targetOf(provider, KINDS[kind]);
        const lacking = Object.entries(NEEDS).flatMap(([need, fields]) => {
          const chat = chatRequest({ model: "x", messages: user("hi"), ...fields });
          const models = { traits, provider: { dialect: "openai" } as never };
          return requirementsOf(chat).some((lackOf) => lackOf(models) !== undefined) ? [need] : [];
        });
        assert.deepEqual(lacking.toSorted(), lacks(kind).toSorted());
        const nothing = { stop: [], logprobs: false, top_logprobs: 2 };
        const zeros = { frequency_penalty: 0, presence_penalty: 0 };
        assert.deepEqual(asked(vendor, kind, { ...nothing, ...zeros }), {
          ...quiet(kind),
          ...(kind === "plain" ? {} : off),
          ...without(zeros, lacks(kind)),
        });
      }
    });
  }

  it("moonshot: models with another thinking setting, or none, also get their thinking back", () => {
    const [hm, so] = [{ reasoning_content: "hm" }, { reasoning_content: "so" }];
    const messages = turns(hm, so, so);
    for (const model of [K3, { thinking: "always" }])
      for (const fields of [ON, {}]) {
        const settings = { reasoning: true, ...model };
        const back = sent({ vendor: "moonshot" }, settings, { messages, ...fields })["messages"];
        assert.deepEqual(back, messages);
      }
  });

  // What the table of vendors recommends for some of their models.
  for (const [model, vendor, settings, out] of [
    ["Magistral", "mistral", { thinking: "always" }, [{}, {}, effort("high")]],
    ["Kimi K3", "moonshot", K3, [{}, effort("high"), effort("max")]],
  ] as const)
    it(`${vendor}: thinking off, on, and deep for ${model}`, () => {
      const quiet = { extra: {}, defaults_to_one: ["temperature", "top_p"] };
      for (const [at, fields] of [{}, ON, { ...ON, reasoning_effort: "max" }].entries())
        assert.deepEqual(
          asked(vendor, { reasoning: true, ...quiet, ...settings }, fields),
          out[at],
        );
    });
});

it("top_logprobs of 0 is not sent, because llama.cpp would state no log probabilities", () => {
  const fields = asked("llama.cpp", "plain", { logprobs: true, top_logprobs: 0 });
  assert.deepEqual(fields, { ...SILENT, logprobs: true });
});

/** A conversation with two calls, and these fields in its three assistant messages. */
function turns(...fields: readonly [first: Json, second: Json, last: Json]): Json[] {
  const [one, two] = [calledOf("aaaaaaaaa"), calledOf("bbbbbbbbb")];
  const [first, second, last] = fields;
  return [
    ...user("hi"),
    ...[{ ...one[0], ...first }, one[1]!, { ...two[0], ...second }, two[1]!],
    { role: "assistant", content: "so", ...last },
    ...user("go on"),
  ];
}

for (const [vendor, temperature, top_p] of [
  ["openai", 2, 0],
  ["deepseek", 2, 0.01],
  ["mistral", 1.5, 0.01],
  ["vllm", 2, 0.01],
  ["sglang", 2, 0.01],
  ["nvidia", 2, 0.01],
  ["deepinfra", 2, 0.01],
  ["qwen", 1.99, 0.01],
  ["zhipu", 1, 0.01],
  ["cohere", 1, 0.01],
] as const)
  it(`the ends of a range at ${vendor} are ${temperature} and ${top_p}, because some servers reject an end`, () => {
    const ends = sent({ vendor }, {}, { temperature: 2, top_p: 0 });
    assert.deepEqual([ends["temperature"], ends["top_p"]], [temperature, top_p]);
    assert.equal(sent({ vendor }, {}, { top_p: 0.5 })["top_p"], 0.5);
  });

/** A system message, and several as sent to a model that accepts system messages only first. */
const system = (content: string) => ({ role: "system", content });
const says = (content: string) => ({ role: "assistant", content });
const asTold = (content: string) =>
  user(`(What follows is an instruction of the system.)\n${content}`);
const POLITE = { role: "developer", content: "Be polite." };
/** The messages that are sent to this vendor for these. */
const back = (vendor: string, messages: readonly object[], traits: object = {}): Json[] =>
  sent({ vendor, dialect: "openai", base_url: "http://x", ...traits }, {}, { messages })[
    "messages"
  ];
const MARK = { cache_control: { type: "ephemeral" } };
/** The same for vllm, if the client has marked the message at this place. */
function backMarked(messages: readonly object[], at: number): Json[] {
  const chat = chatRequest({ model: "x", messages });
  const all = chat.messages.map((message, index) => {
    const marked = [{ type: "text" as const, text: String(message.content), ...MARK }];
    return index === at ? { ...message, marked } : message;
  });
  const target = targetOf({ vendor: "vllm", cache_control: true });
  const { body } = compatibleDialect.request({ ...chat, messages: all }, target);
  return (JSON.parse(JSON.stringify(body)) as Json)["messages"];
}

describe("system messages", () => {
  for (const vendor of [
    ...["vllm", "sglang", "llama.cpp", "lmstudio"],
    ...["nvidia", "deepinfra", "together", "fireworks", "qwen", "mistral", "ollama"],
  ])
    it(`${vendor}: one is sent, first, because chat templates or the API reject others`, () => {
      const begun = [system("Be brief."), POLITE, ...user("hi"), says("So.")];
      const one = [system("Be brief.\n\nBe polite."), ...user("hi"), says("So.")];
      const more = [...asTold("Stop."), ...user("on")];
      const told = (messages: Json[]) => back(vendor, messages, { prefill: "none" });
      assert.deepEqual(told(begun), one);
      assert.deepEqual(told([...begun, system("Stop."), ...user("on")]), [...one, ...more]);
      const asked = [...user("hi"), ...asTold("Be polite.")];
      assert.deepEqual(told([...user("hi"), POLITE]), asked);
      assert.deepEqual(told([system("a"), system("b")]), [system("a\n\nb")]);
    });

  for (const vendor of ["openai", "deepseek", "generic"])
    it(`${vendor}: all stay where they are`, () => {
      const begun = [system("a"), system("b"), ...user("hi"), says("So.")];
      const messages = [...begun, system("c"), ...user("on")];
      assert.deepEqual(back(vendor, messages), messages);
    });

  it("are left out where a later one has no text: Claude Code states its effort with such", () => {
    const messages = [POLITE, ...user("hi"), says("So."), system(" "), ...user("on")];
    assert.deepEqual(back("vllm", messages), [
      ...[system("Be polite."), ...user("hi"), says("So.")],
      ...user("on"),
    ]);
    // A server might continue an assistant message at the end.
    const ended = back("vllm", messages.slice(0, -1));
    assert.deepEqual(ended.at(-1)!["role"], "user");
  });

  it("keep the client's cache marks when they are joined or converted", () => {
    assert.deepEqual(backMarked([system("a"), system("b"), ...user("hi")], 1)[0]!["content"], [
      { type: "text", text: "a" },
      { type: "text", text: "\n\nb", ...MARK },
    ]);
    const [, told] = backMarked([...user("hi"), system("b")], 1);
    assert.deepEqual(told!["content"], [{ type: "text", text: asTold("b")[0]!.content, ...MARK }]);
  });
});

describe("empty assistant messages", () => {
  const messages = [...user("hi"), says(" \n"), ...user("go on"), says("So."), says("")];

  for (const vendor of ["moonshot", "mistral", "openai"])
    it(`${vendor}: are left out, because some vendors reject a conversation with one`, () => {
      const [first, second, last, ...more] = back(vendor, messages);
      assert.deepEqual([first, second, more], [...user("hi"), ...user("go on"), []]);
      assert.equal(last!["content"], "So.");
      const called = { ...calledOf("call_1")[0], content: "" };
      assert.equal(back(vendor, [...user("hi"), called]).length, 2);
    });

  it("vllm: stay, because a chat template may require alternating roles", () =>
    assert.deepEqual(back("vllm", messages), messages));
});

describe("a chat template that requires alternating roles", () => {
  const alternating = (messages: readonly object[], vendor = "vllm") =>
    back(vendor, messages, { alternates: true });
  const READ = says("I have read the results.");
  const RESULT = resultOf("calledOne", "sunny");

  it("gets consecutive user messages as one, and an assistant message after each call's results", () => {
    const called = [...calledOf("calledOne"), RESULT];
    const messages = [POLITE, ...user("hi"), ...user("on"), ...called];
    const begun = [system("Be polite."), ...user("hi\n\non"), ...called];
    assert.deepEqual(alternating(messages), begun);
    const two = [...user("a"), ...user("b")];
    assert.deepEqual(alternating([...messages, ...two]), [...begun, READ, ...user("a\n\nb")]);
    assert.deepEqual(alternating([...messages, POLITE]), [...begun, READ, ...asTold("Be polite.")]);
    assert.deepEqual(back("vllm", two, { alternates: false }), two);
  });

  it("gets them as one even if a system message or an empty answer was between them", () => {
    const messages = [...user("a"), system("b"), ...user("c"), says(""), ...user("d")];
    const joined = user("a\n\n(What follows is an instruction of the system.)\nb\n\nc\n\nd");
    for (const vendor of ["vllm", "openrouter", "generic"])
      assert.deepEqual(alternating(messages, vendor), joined, vendor);
  });

  it("gets a user message before an assistant's greeting", () => {
    const greeted = [says("Hello!"), ...user("hi")];
    const opened = [...user("(The conversation begins.)"), ...greeted];
    assert.deepEqual(alternating(greeted), opened);
    assert.deepEqual(alternating([system("a"), ...greeted]), [system("a"), ...opened]);
    assert.deepEqual(back("vllm", greeted, { alternates: false }), greeted);
  });

  it("gets no blank in the place of a thought", () => {
    const messages = [...user("hi"), ...calledOf("calledOne"), RESULT];
    for (const [alternates, thought] of [
      [true, undefined],
      [false, " "],
    ] as const) {
      const provider = { vendor: "generic", echo: "reasoning_content", alternates };
      const { messages: told } = sent(provider, { reasoning: true }, { ...ON, messages });
      assert.equal(told[1].reasoning_content, thought);
    }
  });

  it("gets images with the text around them", () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };
    const text = (words: string) => ({ type: "text", text: words });
    const shown = { role: "user", content: [text("See"), image] };
    const sent = back("vllm", [...user("a"), shown, ...user("b")], {
      alternates: true,
      supports: ["images"],
    });
    assert.deepEqual(sent[0]!["content"], [text("a"), text("\n\nSee"), image, text("\n\nb")]);
  });
});

describe("tools", () => {
  /** The ids of calls as sent to a vendor. The results must have the same. */
  const idsAt = (vendor: string, ids: readonly string[], traits = {}): readonly string[] => {
    const [, turn, ...answers] = back(vendor, [...user("hi"), ...calledOf(...ids)], traits);
    const given = turn!["tool_calls"].map(({ id }: Json) => id);
    const answered = answers.map(({ tool_call_id: id }) => id);
    assert.deepEqual(answered, given);
    return given;
  };

  it("have arguments that are an object, as vLLM and llama.cpp require of earlier calls", () => {
    const cut = '{"path":"/tmp/a';
    for (const [stated, sent] of [
      ['{ "b":1, "a":2 }', '{ "b":1, "a":2 }'],
      [cut, JSON.stringify({ _raw: cut })],
      ['"x"', JSON.stringify({ _raw: '"x"' })],
      ["", "{}"],
    ]) {
      const [turn, answer] = calledOf("call_1");
      const [call] = turn!["tool_calls"];
      const tool_calls = [{ ...call, function: { name: "f", arguments: stated } }];
      const asked = [...user("hi"), { ...turn, tool_calls }, answer!];
      const argumentsAt = (vendor: string, traits = {}): unknown =>
        back(vendor, asked, traits)[1]!["tool_calls"][0].function.arguments;
      assert.equal(argumentsAt("vllm"), sent);
      assert.equal(argumentsAt("vllm", { tool_choice: "any" }), sent);
      assert.equal(argumentsAt("openai"), stated);
    }
  });

  it("have ids of nine letters and digits at Mistral, the same in each request", () => {
    for (const [vendor, traits] of [
      ["mistral", {}],
      ["vllm", { alternates: true }],
    ] as const) {
      const [id = "", kept] = idsAt(vendor, ["call_1", "M0DC9pRXh"], traits);
      assert.match(id, /^[a-z\d]{9}$/);
      assert.equal(kept, "M0DC9pRXh");
      assert.deepEqual(idsAt(vendor, ["call_1"], traits), [id]);
    }
  });

  it("have the ids that the provider stated, except one used by several calls", () => {
    const [one, two, same] = ["functions.f:0", "functions.f:1", "functions.f:0"].map(usableId);
    assert.deepEqual(idsAt("moonshot", [one!, two!]), ["functions.f:0", "functions.f:1"]);
    assert.deepEqual(idsAt("moonshot", [one!, same!]), [one, same]);
  });

  it("have shortened ids at OpenAI if another provider's are too long, the same in each request", () => {
    const long = `chatcmpl-tool-${"a".repeat(32)}`;
    const stated = [long, "x".repeat(40), `${long}b`];
    assert.deepEqual(idsAt("vllm", stated), stated);
    for (const vendor of ["openai", "azure"]) {
      const [first, short, last] = idsAt(vendor, stated);
      for (const id of [first!, last!]) assert.match(id, /^call_[\da-f]{24}$/);
      assert.equal(short, "x".repeat(40));
      assert.notEqual(first, last);
      assert.deepEqual(idsAt(vendor, stated), [first, short, last]);
    }
  });

  it("are not needed for thinking to go back to Mistral, if the client kept any", () => {
    const thought = { ...says("So."), reasoning_content: "hm" };
    const blank = { ...says("Yes."), reasoning_content: " " };
    const messages = [...user("hi"), thought, ...user("on"), blank, ...user("on")];
    const parts = [
      { type: "thinking", thinking: [{ type: "text", text: "hm" }], closed: true },
      { type: "text", text: "So." },
    ];
    for (const [fields, content] of [
      [ON, parts],
      [{}, "So."],
    ] as const) {
      const { messages: told } = sent({ vendor: "mistral" }, KINDS.thinker, {
        messages,
        ...fields,
      });
      assert.deepEqual(told[1], { role: "assistant", content });
      assert.deepEqual(told[3], says("Yes."));
    }
  });

  it("are followed by an assistant message before a user or system message at Mistral", () => {
    for (const next of [user("and?"), [system("and?")]]) {
      const messages = [...user("hi"), ...calledOf("call_1"), ...next];
      const roles = back("mistral", messages).map(({ role }) => role);
      assert.deepEqual(roles, ["user", "assistant", "tool", "assistant", "user"]);
    }
  });

  const text = { type: "string" };
  const withX = (x: unknown, others: object = {}) => ({
    type: "object",
    properties: { x },
    ...others,
  });
  for (const [what, parameters, accepted] of [
    [
      "alternatives at the top",
      { type: "object", anyOf: [withX(text, { required: ["x"] }), { required: ["y"] }] },
      withX(text),
    ],
    ["a top without a type", { properties: {} }, { properties: {}, type: "object" }],
    [
      "a reference at the top, to a schema that refers to itself",
      { $ref: "#/$defs/A", $defs: { A: withX({ $ref: "#/$defs/A" }) } },
      withX({}),
    ],
    [
      "a type next to anyOf",
      withX({ type: ["string", "null"], description: "d", anyOf: [{ enum: ["a"] }, true] }),
      withX({
        description: "d",
        anyOf: [{ type: "string", enum: ["a"] }, { type: ["string", "null"] }],
      }),
    ],
    [
      "alternatives of what is required",
      withX(withX(text, { anyOf: [{ required: ["x"] }, { required: ["y"] }] })),
      withX({
        anyOf: [
          withX(text, { required: ["x"] }),
          { type: "object", properties: { x: text, y: {} }, required: ["y"] },
        ],
      }),
    ],
    [
      "alternatives of other types, and references",
      withX({
        type: "string",
        minLength: 1,
        anyOf: [{ type: "null" }, { $ref: "#/$defs/A" }, false],
      }),
      withX({ anyOf: [{ type: "null" }, { type: "string", minLength: 1 }, { not: {} }] }),
    ],
    [
      "alternatives that share too much",
      withX({ type: "object", title: "t", $id: "x".repeat(60_000), anyOf: [{}, {}] }),
      withX({
        title: "t",
        $id: "x".repeat(60_000),
        anyOf: [{ type: "object" }, { type: "object" }],
      }),
    ],
    [
      "alternatives that share far too much",
      withX({ type: "object", pattern: "x".repeat(60_000), anyOf: [{}, {}, {}] }),
      withX({ type: "object", pattern: "x".repeat(60_000) }),
    ],
    [
      "values without a type",
      withX({ enum: ["a", "b"] }),
      withX({ enum: ["a", "b"], type: "string" }),
    ],
    [
      "numbers",
      withX({ type: "integer", enum: [1, 1.5] }),
      withX({ type: "number", enum: [1, 1.5] }),
    ],
    [
      "values or null",
      withX({ type: "string", enum: ["a", null] }),
      withX({ type: ["string", "null"], enum: ["a", null] }),
    ],
    [
      "values of several types",
      withX({ description: "d", enum: [1, "a", null, [], {}] }),
      withX({
        description: "d",
        anyOf: [
          { type: "integer", enum: [1] },
          { type: "string", enum: ["a"] },
          { type: "null", enum: [null] },
          { type: "array", enum: [[]] },
          { type: "object", enum: [{}] },
        ],
      }),
    ],
    [
      "references to what is not in $defs",
      {
        type: "object",
        properties: {
          a: { $ref: "#/definitions/A", description: "d" },
          b: { $ref: "#/properties/c/items" },
          c: { items: text },
          d: { $ref: "#/$defs/a~1b" },
        },
        definitions: { A: { $ref: "#/definitions/B" }, B: text },
        $defs: { "a/b": text },
      },
      {
        type: "object",
        properties: {
          a: { ...text, description: "d" },
          b: text,
          c: { items: text },
          d: text,
        },
      },
    ],
    [
      "definitions below the top",
      withX(withX({ $ref: "#/properties/x/$defs/A" }, { $defs: { A: { enum: ["a"] }, B: true } })),
      withX(withX({ enum: ["a"], type: "string" })),
    ],
    [
      "references to nothing",
      { type: "object", properties: { a: { $ref: "http://a/b" }, b: { $ref: "#/$defs/B" } } },
      { type: "object", properties: { a: {}, b: {} } },
    ],
    [
      "a type next to a reference, as Codex has it",
      withX(
        { type: "string", format: "uuid", description: "d", $ref: "#/$defs/A" },
        { $defs: { A: text } },
      ),
      withX({ type: "string", format: "uuid", description: "d" }),
    ],
    [
      "notes that other schemas have, too",
      {
        type: "object",
        properties: {
          a: { description: "a", default: "a", examples: ["a"], $ref: "#/$defs/A" },
          b: {
            description: "b",
            default: "b",
            examples: ["b"],
            anyOf: [{ ...text, default: "c" }],
          },
        },
        $defs: { A: { ...text, description: "A", default: "A" } },
      },
      {
        type: "object",
        properties: {
          a: { ...text, description: "a", default: "a", examples: ["a"] },
          b: { description: "b", examples: ["b"], anyOf: [{ ...text, default: "c" }] },
        },
      },
    ],
    [
      "a list of items",
      withX({ properties: { items: { items: [text], maxItems: 1 } } }),
      withX({ properties: { items: { prefixItems: [text], maxItems: 1 } } }),
    ],
    [
      "properties with the names of keywords",
      { type: "object", properties: { type: text, anyOf: { type: "array" }, items: true } },
      { type: "object", properties: { type: text, anyOf: { type: "array" }, items: {} } },
    ],
    [
      "a property that is called $ref",
      withX({ properties: { $ref: text, a: text }, required: ["$ref", "a"] }),
      withX({ properties: { a: text }, required: ["a"] }),
    ],
    [
      "members without meaning",
      withX({
        type: "any",
        description: null,
        required: true,
        enum: [],
        anyOf: [],
        items: 1,
        additionalProperties: "x",
      }),
      withX({}),
    ],
    [
      "a map",
      withX({ type: ["object", "x"], additionalProperties: { enum: ["a"] }, properties: null }),
      withX({
        type: ["object"],
        additionalProperties: { enum: ["a"], type: "string" },
        properties: {},
      }),
    ],
    [
      "a closed object",
      withX(true, { additionalProperties: false }),
      withX({}, { additionalProperties: false }),
    ],
    ["no parameters", undefined, undefined],
  ] as const)
    it(`have parameters that Kimi accepts: ${what}`, () => {
      const tools = [{ type: "function", function: { name: "f", parameters } }];
      const sentTo = (upstream_model: string): Json =>
        sent({ vendor: "moonshot" }, { upstream_model }, { tools, tool_choice: "auto" })[
          "tools"
        ][0];
      assert.deepEqual(sentTo("kimi-k2.6")["function"]["parameters"], accepted);
      assert.deepEqual(sentTo("m"), JSON.parse(JSON.stringify(tools[0])));
    });

  it("keep what they state themselves at Kimi, however much the references of others copy", () => {
    const copied = Array.from({ length: 60 }, (_, at) => [at, { $ref: "#/$defs/A" }]);
    const A = { type: "string", enum: Array(1_000).fill("a") };
    const large = { properties: Object.fromEntries(copied), $defs: { A } };
    const tools = [large, withX(text)].map((parameters) => ({
      type: "function",
      function: { name: "f", parameters },
    }));
    const asked = { tools, tool_choice: "auto" };
    const [first, second] = sent(
      { vendor: "moonshot" },
      { upstream_model: "kimi-k3" },
      asked,
    ).tools;
    assert.deepEqual(first.function.parameters.properties[59], {});
    assert.deepEqual(second.function.parameters, withX(text));
  });

  it("have parameters at Mistral, which demands them, also where the client stated none", () => {
    const bare = { type: "function", function: { name: "f" } };
    for (const [vendor, tool] of [
      ["mistral", fn("f")],
      ["openai", bare],
    ] as const)
      for (const strict of [true, false]) {
        const tools = [{ ...bare, function: { ...bare.function, strict } }];
        const { tools: told } = sent({ vendor }, {}, { tools, tool_choice: "auto" });
        assert.deepEqual(told, [{ ...tool, function: { ...tool.function, strict } }]);
      }
  });

  it("have an object with properties as parameters at LM Studio, which refuses others", () => {
    const empty = { type: "object", properties: {} };
    const { type, ...untyped } = withX(text);
    for (const [parameters, accepted] of [
      [undefined, empty],
      [{}, empty],
      [
        { type: "object", additionalProperties: false },
        { ...empty, additionalProperties: false },
      ],
      [untyped, { type, ...untyped }],
      [withX(text), withX(text)],
    ] as const) {
      const tools = [{ type: "function", function: { name: "f", parameters } }];
      const body = sent({ vendor: "lmstudio" }, {}, { tools, tool_choice: "auto" });
      assert.deepEqual(body["tools"][0].function.parameters, accepted);
    }
  });

  it("have properties and items at OpenAI, which refuses a schema without", () => {
    const array = { type: "array", description: "d" };
    const pair = { type: ["array", "null"], prefixItems: [text, array] };
    const items = {};
    const typed = { type: "array", items: text };
    for (const [parameters, accepted] of [
      [undefined, undefined],
      [{}, { type: "object", properties: {} }],
      [{ type: "object" }, { type: "object", properties: {} }],
      [withX(typed), withX(typed)],
      [
        { $ref: "#/definitions/f", definitions: { f: withX(text) } },
        { ...withX(text), definitions: { f: withX(text) } },
      ],
      [withX(array), withX({ ...array, items })],
      [
        withX({ properties: { default: array }, default: array, enum: [array] }),
        withX({ properties: { default: { ...array, items } }, default: array, enum: [array] }),
      ],
      [
        withX({ anyOf: [pair, { type: "array", items: array }] }),
        withX({
          anyOf: [
            { ...pair, prefixItems: [text, { ...array, items }], items },
            { type: "array", items: { ...array, items } },
          ],
        }),
      ],
    ] as const) {
      const tools = [{ type: "function", function: { name: "f", parameters } }];
      const sentTo = (vendor: string, upstream_model: string) =>
        sent({ vendor }, { upstream_model }, { tools, tool_choice: "auto" })["tools"][0];
      assert.deepEqual(sentTo("openai", "gpt-5.6").function.parameters, accepted);
      assert.deepEqual(sentTo("deepseek", "deepseek-chat").function.parameters, parameters);
    }
  });

  it("have no alternatives at the top at OpenAI and xAI, which refuse them", () => {
    const form = (name: string) => ({ properties: { [name]: text, z: text }, required: [name] });
    const parameters = { type: "object", description: "d", anyOf: [form("a"), form("b")] };
    const flat = {
      type: "object",
      description: "d",
      properties: { a: text, z: { anyOf: [text, text] }, b: text },
    };
    for (const [vendor, upstream_model, strict, expected] of [
      ["openai", "gpt-5.6", undefined, flat],
      ["openai", "o3", false, flat],
      ["openai", "ft:gpt-4.1:org::id", undefined, flat],
      ["openrouter", "openai/gpt-5.6", undefined, flat],
      ["xai", "grok-4.7", undefined, flat],
      ["openrouter", "x-ai/grok-4.7", undefined, flat],
      ["openai", "gpt-5.6", true, parameters],
      ["deepseek", "deepseek-v4-flash", undefined, parameters],
      ["qwen", "qwen3-max", undefined, { ...parameters, properties: {} }],
    ] as const) {
      const tools = [{ type: "function", function: { name: "f", parameters, strict } }];
      const body = sent({ vendor }, { upstream_model }, { tools, tool_choice: "auto" });
      assert.deepEqual(body["tools"][0].function.parameters, expected, upstream_model);
    }
  });

  it("have no patterns that only JavaScript knows: OpenAI, DeepSeek and Kimi refuse them", () => {
    const texts = (pattern: string) => ({ type: "array", items: { type: "string", pattern } });
    const refused = [
      String.raw`^(?!__.*__$)[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}"\\./[\]]{1,200}$`, // Claude Code's Artifact
      String.raw`^[^/\\\0]+$`,
      "^(?<=a)b$",
      String.raw`^[^\u0000]*$`,
    ];
    const properties = {
      ...Object.fromEntries(refused.map((pattern, at) => [`a${at}`, texts(pattern)])),
      pattern: { type: "string", pattern: String.raw`^(?:\d+\.)?[\w/-]+$` },
      phone: { type: "string", pattern: String.raw`^\(?\d{3}\)?$` },
      path: { type: "string", pattern: String.raw`^C:\\users\\p` },
    };
    const parameters = { type: "object", properties };
    const tools = [{ type: "function", function: { name: "f", parameters } }];
    const plain = { type: "array", items: { type: "string" } };
    const kept = refused.map((_pattern, at) => [`a${at}`, plain]);
    const accepted = { ...properties, ...Object.fromEntries(kept) };
    for (const [vendor, upstream_model] of [
      ["openai", "gpt-5.6"],
      ["deepseek", "deepseek-v4-flash"],
      ["moonshot", "kimi-k3"],
    ] as const) {
      const body = sent({ vendor }, { upstream_model }, { tools, tool_choice: "auto" });
      assert.deepEqual(body["tools"][0].function.parameters.properties, accepted);
    }
    const demanded = [{ type: "function", function: { name: "f", parameters, strict: true } }];
    const { tools: asDemanded } = sent({ vendor: "openai" }, {}, { tools: demanded });
    assert.deepEqual(
      asDemanded[0].function.parameters,
      parameters,
      "the client learns of the refusal",
    );
  });

  it("have objects as schemas of any value: llama.cpp and Ollama refuse the schema true", () => {
    const parametersWith = (any: unknown) => ({
      type: "object",
      properties: {
        any,
        list: { type: "array", items: any, uniqueItems: true },
        deep: { type: "object", properties: { items: { anyOf: [any, SCHEMA] } }, nullable: true },
        pair: { type: "array", prefixItems: [any, SCHEMA], items: false },
        default: { default: { items: true }, examples: [{ properties: { a: true } }], items: any },
      },
      additionalProperties: true,
      $defs: { any, properties: { type: "array", items: any, uniqueItems: true } },
    });
    const function_ = { name: "f", parameters: parametersWith(true) };
    const tools = [{ type: "function", function: function_ }];
    const body = sent({ vendor: "llama.cpp", base_url: "http://x" }, {}, { tools });
    assert.deepEqual(body["tools"][0].function.parameters, parametersWith({}));
  });

  it("disable thinking if the model rejects both together", () => {
    const thinker = { reasoning: true, dialect: "openai" };
    for (const [vendor, upstream_model, choice, thinks] of [
      ["openai", "gpt-5.1", "auto", true],
      ["openai", "gpt-5.5", "auto", false],
      ["azure", "gpt-5.4-mini", "none", false],
      ["bedrock", "openai.gpt-5.6-sol", "auto", false],
      ["deepseek", "m", "auto", true],
      ["deepseek", "m", "required", false],
      ["qwen", "m", named("g"), false],
      ["moonshot", "m", "required", false],
      ["groq", "m", "required", true],
    ] as const) {
      const base_url = vendor === "azure" ? "https://acme.openai.azure.com" : undefined;
      const fields = { tools: TOOLS, tool_choice: choice, ...ON };
      const region = vendor === "bedrock" ? "us-east-1" : undefined;
      const body = sent({ vendor, base_url, region }, { ...thinker, upstream_model }, fields);
      const { thinking, enable_thinking, reasoning_effort } = body;
      const isOn = thinking?.type === "enabled" || enable_thinking || reasoning_effort === "medium";
      assert.equal(Boolean(isOn), thinks, `${vendor} ${upstream_model}`);
    }
    const alone = sent({ vendor: "openai" }, { ...thinker, upstream_model: "gpt-5.5" }, ON);
    assert.equal(alone["reasoning_effort"], "medium", "without tools it thinks");
  });
});

for (const [vendor, inMessage, inBody] of [
  ["mistral", { prefix: true }, effort("none")],
  ["qwen", { partial: true }, { enable_thinking: false }],
  ["vllm", {}, { continue_final_message: true, add_generation_prompt: false, ...template(false) }],
  ["llama.cpp", {}, template(false)],
  ["openrouter", {}, byReasoning.off],
  ["openai", {}, effort("medium")],
] as const)
  it(`the beginning of an answer is marked as ${vendor} wants it, whoever began it, and not thought about`, () => {
    const fields = { messages: [...user("hi"), says("So")], ...ON };
    const body = sent({ vendor, base_url: "http://x" }, { reasoning: true }, fields);
    assert.deepEqual(body["messages"].at(-1), { ...says("So"), ...inMessage });
    assert.deepEqual({ ...body, ...inBody }, body);
  });

it("the beginning of an answer is one text, without the client's cache mark", () =>
  assert.equal(backMarked([says("So ")], 0)[0]!["content"], "So"));
