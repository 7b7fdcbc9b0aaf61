// What each vendor of OpenAI-compatible models is asked, and what it is never asked: its row of
// providers.md, written down here once more by hand. Then the settings of a provider or a model
// against the vendor's.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { usableId } from "../../../../src/extensions/providers/provider-words/index.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { requirementsOf } from "../../../../src/extensions/routing/capabilities/requirements.ts";
import { user } from "../../../support/gateway.ts";
import { calledOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };
const fn = (name: string) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
});
const TOOLS = [fn("f"), fn("g")];
const named = (name: string) => ({ type: "function", function: { name } });
const SCHEMA = { type: "json_schema", json_schema: { name: "x", schema: { type: "object" } } };

/** Everything that a client can say, but for what has a table of its own below. */
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
/** Never passed on. */
const NOISE = { metadata: { a: "b" }, store: true, n: 1, enable_thinking: true };
/** Passed on to those that take them. */
const FURTHER = {
  logit_bias: { 1: 1 },
  verbosity: "low",
  prompt_cache_key: "k",
  prompt_cache_retention: "24h",
};
const PSEUDONYM = createHash("sha256").update("alice").digest("hex").slice(0, 32);

interface Row {
  /** How what goes out differs from what the client said: null: it is not there. */
  readonly sent?: Json;
  /** The same for models that think, beyond `sent`. */
  readonly thinker?: Json;
  /** What goes out of FURTHER; of a model that thinks, if that differs. Absent: nothing. */
  readonly takes?: readonly (keyof typeof FURTHER)[];
  readonly thinkerTakes?: readonly (keyof typeof FURTHER)[];
  /** What makes a request unfit: of every model, and beyond that of those that think. */
  readonly refused?: readonly (keyof typeof NEEDS)[];
  readonly thinkerRefused?: readonly (keyof typeof NEEDS)[];
  /** Thinking not asked for; asked for; asked for with each depth of EFFORTS, if that differs. */
  readonly off: Json;
  readonly on: Json;
  readonly depth?: (effort: string) => Json;
  /** The depths that "low", "medium", "xhigh" become. */
  readonly efforts?: readonly [low: string, medium: string, xhigh: string];
  /** A stream's usage comes unasked. */
  readonly usageUnasked?: true;
  /** What is sent of temperature and top_p where the client says neither; absent: both, as 1. */
  readonly silent?: Json;
  readonly choices?: "required" | "any" | "auto";
  /** The field in which tool calls are sent back with their thinking. */
  readonly echo?: string;
}

/** What a request may need that not every vendor has. */
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
const EFFORTS = ["low", "medium", "xhigh"] as const;
/** Both defaults of the contract. */
const SILENT = { temperature: 1, top_p: 1 };

const renamed = { max_tokens: null, max_completion_tokens: 100 };
const template = (on: boolean) => ({ chat_template_kwargs: { enable_thinking: on, thinking: on } });
const effort = (reasoning_effort: string) => ({ reasoning_effort });
const TYPE = { off: { thinking: { type: "disabled" } }, on: ON };
const beside = (on: Json) => (depth: string) => ({ ...on, reasoning_effort: depth });
const TEMPLATE = {
  off: template(false),
  on: template(true),
  depth: beside(template(true)),
  efforts: ["low", "medium", "xhigh"],
} as const;

/** The settings of Kimi K3. */
const K3 = {
  thinking: "reasoning_effort",
  efforts: ["low", "high", "max"],
  thinking_off: false,
};

const ROWS: Record<string, Row> = {
  generic: { off: {}, on: {} },
  openai: {
    takes: ["logit_bias", "verbosity", "prompt_cache_key", "prompt_cache_retention"],
    thinkerTakes: ["verbosity", "prompt_cache_key", "prompt_cache_retention"],
    silent: {},
    sent: renamed,
    thinker: { temperature: null, top_p: null },
    thinkerRefused: [...PENALTIES, "logprobs"],
    off: effort("none"),
    on: effort("medium"),
    depth: effort,
    efforts: ["low", "medium", "xhigh"],
  },
  deepseek: {
    silent: {},
    refused: ["json_schema"],
    ...TYPE,
    depth: beside(ON),
    efforts: ["low", "high", "max"],
    echo: "reasoning_content",
  },
  mistral: {
    silent: { temperature: 1 },
    sent: { seed: null, random_seed: 7, user: null },
    refused: ["logprobs"],
    off: effort("none"),
    on: effort("high"),
    depth: effort,
    efforts: ["high", "high", "high"],
    usageUnasked: true,
    choices: "any",
  },
  groq: {
    silent: {},
    sent: renamed,
    thinker: { reasoning_format: "parsed" },
    refused: ["logprobs"],
    off: effort("none"),
    on: effort("medium"),
    depth: effort,
    efforts: ["low", "medium", "high"],
    echo: "reasoning",
  },
  openrouter: {
    takes: ["logit_bias"],
    silent: {},
    off: { reasoning: { enabled: false } },
    on: { reasoning: { enabled: true } },
    depth: (effort) => ({ reasoning: { effort } }),
    efforts: ["low", "medium", "xhigh"],
  },
  together: {
    takes: ["logit_bias"],
    sent: { user: null, parallel_tool_calls: null },
    refused: ["logprobs"],
    off: { reasoning: { enabled: false } },
    on: { reasoning: { enabled: true } },
  },
  vllm: { ...TEMPLATE, takes: ["logit_bias"] },
  sglang: { ...TEMPLATE, takes: ["logit_bias"], thinker: { separate_reasoning: true } },
  "llama.cpp": { ...TEMPLATE, takes: ["logit_bias"], choices: "required" },
  ollama: {
    refused: ["required", "named", "logprobs"],
    off: effort("none"),
    on: effort("medium"),
    depth: effort,
    efforts: ["low", "medium", "max"],
    choices: "auto",
  },
  qwen: { off: { enable_thinking: false }, on: { enable_thinking: true } },
  moonshot: {
    takes: ["prompt_cache_key"],
    silent: {},
    sent: { ...renamed, temperature: null, top_p: null },
    refused: [...PENALTIES, "logprobs", "json_schema"],
    ...TYPE,
    echo: "reasoning_content",
  },
  zhipu: {
    sent: { temperature: 1, seed: null, user: null, parallel_tool_calls: null },
    refused: [...PENALTIES, "required", "named", "logprobs", "json_schema"],
    ...TYPE,
    usageUnasked: true,
    choices: "auto",
    echo: "reasoning_content",
  },
  "gemini-openai": {
    silent: { top_p: 1 },
    sent: { seed: null, user: null, parallel_tool_calls: null },
    refused: [...PENALTIES, "logprobs"],
    off: effort("none"),
    on: effort("medium"),
    depth: effort,
    efforts: ["low", "medium", "high"],
  },
  xai: {
    silent: {},
    sent: renamed,
    thinkerRefused: [...PENALTIES, "stop"],
    off: effort("none"),
    on: effort("medium"),
    depth: effort,
    efforts: ["low", "medium", "high"],
  },
};

/**
 * A model of each kind at each vendor: one that thinks, one that does not, one that cannot be
 * stopped from thinking.
 */
const KINDS = {
  thinker: { reasoning: true },
  plain: { reasoning: false },
  stubborn: { reasoning: true, thinking_off: false },
};
type Kind = keyof typeof KINDS;

/** What a model with these settings is asked; every request has the usual tool_choice. */
function sent(provider: object, model: Parameters<typeof targetOf>[1], fields: object): Json {
  const target = targetOf(provider, model);
  const { tool_choice = "none", ...chat } = chatRequest({
    model: "x",
    messages: user("hi"),
    ...fields,
  });
  const { body } = compatibleDialect.request({ ...chat, tool_choice, further: FURTHER }, target);
  return JSON.parse(JSON.stringify({ ...body, ...target.traits.extra })) as Json;
}

/** The same without what is in every request, of a kind of models or of one with these settings. */
function asked(vendor: string, kind: Kind | object, fields: object): Json {
  const settings = typeof kind === "string" ? KINDS[kind] : kind;
  const { model, messages, ...rest } = sent({ vendor, dialect: "openai" }, settings, fields);
  assert.ok(model === "m" && messages.length > 0);
  for (const name of Object.keys(FURTHER)) if (!("temperature" in fields)) delete rest[name];
  return rest;
}

/** `all` with what stands in `changes`, without what is null there. */
const changed = (...all: Json[]): Json =>
  Object.fromEntries(
    Object.entries(Object.assign({}, ...all)).filter(([, value]) => value !== null),
  );
const only = (fields: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, fields[name]]));
/** The fields without those that these needs are about. */
const without = (fields: Json, refused: readonly string[]): Json => {
  const gone = refused.flatMap((need) => Object.keys(NEEDS[need as keyof typeof NEEDS] ?? {}));
  if (refused.includes("logprobs")) gone.push("top_logprobs");
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !gone.includes(name)));
};

/** What is sent for each choice, by the forms that the vendor knows. */
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

describe("what a vendor is asked", () => {
  for (const [vendor, row] of Object.entries(ROWS)) {
    const { thinker = {}, takes = [], thinkerTakes = takes, refused = [], choices, echo } = row;
    const { off, on, depth, efforts, silent = SILENT } = row;
    const unfit = (kind: Kind): readonly string[] => [
      ...refused.filter((need) => !["required", "named"].includes(need)),
      ...(kind === "plain" ? [] : (row.thinkerRefused ?? [])),
    ];
    /** What is sent where the client says nothing. */
    const quiet = (kind: Kind): Json => changed(silent, kind === "plain" ? {} : thinker);

    it(`${vendor}: everything at once, whole and streamed`, () => {
      for (const kind of ["thinker", "plain"] as const) {
        const can = without(ALL, unfit(kind));
        const { further, more } = {
          plain: { further: takes, more: {} },
          thinker: { further: thinkerTakes, more: { ...thinker, ...on } },
        }[kind];
        const own = [row.sent ?? {}, more, only(FURTHER, further)];
        const out = changed(can, { user: PSEUDONYM }, ...own);
        const fields = { temperature: 1.5, ...can, ...NOISE, ...ON };
        assert.deepEqual(asked(vendor, kind, fields), out);
        const usage = row.usageUnasked ? {} : { stream_options: { include_usage: true } };
        assert.deepEqual(asked(vendor, kind, { ...fields, stream: true }), {
          ...out,
          stream: true,
          ...usage,
        });
      }
    });

    it(`${vendor}: tool_choice`, () => {
      for (const [choice, out] of choicesOf(choices))
        assert.deepEqual(asked(vendor, "plain", { tools: TOOLS, ...choice }), {
          ...silent,
          ...out,
        });
      assert.deepEqual(asked(vendor, "plain", { tools: [] }), silent);
    });

    it(`${vendor}: thinking off, on, and its depth`, () => {
      for (const fields of [{}, { thinking: { type: "disabled" }, reasoning_effort: "high" }]) {
        assert.deepEqual(asked(vendor, "thinker", fields), { ...quiet("thinker"), ...off });
        assert.deepEqual(asked(vendor, "stubborn", fields), quiet("stubborn"));
      }
      assert.deepEqual(asked(vendor, "plain", { ...ON, reasoning_effort: "high" }), silent);
      // The depth alone asks for thinking as well.
      const deep = EFFORTS.flatMap((reasoning_effort, at) =>
        [ON, {}].map((asking) => [
          { ...asking, reasoning_effort },
          efforts ? depth!(efforts[at]!) : on,
        ]),
      );
      for (const kind of ["thinker", "stubborn"] as const)
        for (const [fields, out] of [[ON, on], [{ ...ON, reasoning_effort: "none" }, on], ...deep])
          assert.deepEqual(asked(vendor, kind, fields!), { ...quiet(kind), ...out });
    });

    it(`${vendor}: tool calls that come back, with their thinking or without`, () => {
      const given = turns({ reasoning_content: "hm" }, {}, { reasoning_content: "aha" });
      const bare = turns({}, {}, {});
      const echoed = echo ? turns({ [echo]: "hm" }, { [echo]: "" }, { [echo]: "aha" }) : bare;
      for (const [kind, fields, out] of [
        ["thinker", ON, echoed],
        ["thinker", {}, bare],
        ["plain", ON, bare],
        ["stubborn", ON, echoed],
        ["stubborn", {}, echoed],
      ] as const) {
        const { messages } = sent({ vendor, dialect: "openai" }, KINDS[kind], {
          messages: given,
          ...fields,
        });
        assert.deepEqual(messages, out);
      }
    });

    it(`${vendor}: what it lacks, and what asks for nothing`, () => {
      for (const kind of ["thinker", "plain"] as const) {
        const model = KINDS[kind];
        const traits = traitsOf({ vendor, dialect: "openai" }, model);
        const provider = { dialect: "openai" } as never;
        const lacking = Object.entries(NEEDS).flatMap(([need, fields]) => {
          const chat = chatRequest({ model: "x", messages: user("hi"), ...fields });
          const unmet = requirementsOf(chat).some(
            (lackOf) => lackOf({ traits, provider }) !== undefined,
          );
          return unmet ? [need] : [];
        });
        const expected = [...refused, ...(kind === "plain" ? [] : (row.thinkerRefused ?? []))];
        assert.deepEqual(lacking.toSorted(), expected.toSorted());
        const nothing = { stop: [], logprobs: false, top_logprobs: 2 };
        const zeros = { frequency_penalty: 0, presence_penalty: 0 };
        assert.deepEqual(asked(vendor, kind, { ...nothing, ...zeros }), {
          ...quiet(kind),
          ...(kind === "plain" ? {} : off),
          ...without(zeros, expected),
        });
      }
    });
  }

  it("moonshot: models that are switched otherwise, or not at all, get their thinking back all the same", () => {
    const [hm, so] = [{ reasoning_content: "hm" }, { reasoning_content: "so" }];
    const messages = turns(hm, so, so);
    for (const model of [K3, { thinking: "always" }])
      for (const fields of [ON, {}])
        assert.deepEqual(
          sent({ vendor: "moonshot" }, { reasoning: true, ...model }, { messages, ...fields })[
            "messages"
          ],
          messages,
        );
  });
});

/** A conversation with two calls, and these fields in its three messages of the assistant. */
function turns(...fields: readonly [first: Json, second: Json, last: Json]): Json[] {
  const said = [
    ...calledOf("aaaaaaaaa"),
    ...calledOf("bbbbbbbbb"),
    { role: "assistant", content: "so" },
  ];
  const own = [...fields];
  return [
    ...user("hi"),
    ...said.map((each) => (each["role"] === "assistant" ? { ...each, ...own.shift() } : each)),
    ...user("go on"),
  ];
}

describe("the ends of a range", () => {
  const ENDS = { top_p: 0, temperature: 2 };
  for (const [vendor, sentAs] of [
    ["openai", ENDS],
    ["deepseek", { top_p: 0.01, temperature: 2 }],
    ["mistral", { top_p: 0.01, temperature: 1.5 }],
    ["vllm", { top_p: 0.01, temperature: 2 }],
    ["sglang", { top_p: 0.01, temperature: 2 }],
    ["nvidia", { top_p: 0.01, temperature: 2 }],
    ["qwen", { top_p: 0.01, temperature: 1.99 }],
    ["zhipu", { top_p: 0.01, temperature: 1 }],
    ["cohere", { top_p: 0.01, temperature: 1 }],
  ] as const)
    it(`${vendor}: ${JSON.stringify(sentAs)}, because some servers refuse an end`, () => {
      const { top_p, temperature } = sent({ vendor }, {}, ENDS);
      assert.deepEqual({ top_p, temperature }, sentAs);
      assert.equal(sent({ vendor }, {}, { top_p: 0.5 })["top_p"], 0.5);
    });
});

describe("system messages", () => {
  const system = (content: string) => ({ role: "system", content });
  const SO = { role: "assistant", content: "So." };
  const asTold = (content: string) =>
    user(`(What follows is an instruction of the system.)\n${content}`);
  const sentBy = (vendor: string, messages: readonly object[]) =>
    sent({ vendor, dialect: "openai", base_url: "http://x" }, {}, { messages }).messages;

  for (const vendor of [
    ...["vllm", "sglang", "llama.cpp", "lmstudio"],
    ...["nvidia", "deepinfra", "together", "fireworks"],
  ])
    it(`${vendor}: one is sent, first, because chat templates refuse others`, () => {
      const told = { role: "developer", content: "Be polite." };
      const begun = [system("Be brief."), told, ...user("hi"), SO];
      const one = system("Be brief.\n\nBe polite.");
      assert.deepEqual(sentBy(vendor, begun), [one, ...user("hi"), SO]);
      assert.deepEqual(sentBy(vendor, [...begun, system("Stop."), ...user("on")]), [
        ...[one, ...user("hi"), SO, ...asTold("Stop."), ...user("on")],
      ]);
      assert.deepEqual(sentBy(vendor, [...user("hi"), told]), [
        ...user("hi"),
        ...asTold("Be polite."),
      ]);
      assert.deepEqual(sentBy(vendor, [system("a"), system("b")]), [system("a\n\nb")]);
      const usual = [system("Be brief."), ...user("hi")];
      assert.deepEqual(sentBy(vendor, usual), usual);
    });

  for (const vendor of ["openai", "deepseek", "generic"])
    it(`${vendor}: all stay where they are`, () => {
      const messages = [system("a"), system("b"), ...user("hi"), SO, system("c"), ...user("on")];
      assert.deepEqual(sentBy(vendor, messages), messages);
    });

  it("keep the client's marks for the cache when they are joined", () => {
    const target = targetOf({ vendor: "vllm", cache_control: true });
    const chat = chatRequest({ model: "x", messages: [system("a"), system("b"), ...user("hi")] });
    const marked = [{ type: "text" as const, text: "b", cache_control: { type: "ephemeral" } }];
    const [one, two, ...others] = chat.messages;
    const { body } = compatibleDialect.request(
      { ...chat, messages: [one!, { ...two!, marked }, ...others] },
      target,
    );
    const [{ content }] = (JSON.parse(JSON.stringify(body)) as Json)["messages"];
    assert.deepEqual(content, [
      { type: "text", text: "a" },
      { ...marked[0], text: "\n\nb" },
    ]);
  });
});

describe("answers that are empty", () => {
  const said = (content: string) => ({ role: "assistant", content });
  const messages = [...user("hi"), said(" \n"), ...user("go on"), said("So."), said("")];

  for (const vendor of ["moonshot", "mistral", "openai"])
    it(`${vendor}: are left out, because some vendors refuse a conversation that has one`, () => {
      const kept = [...user("hi"), ...user("go on"), said("So.")];
      assert.deepEqual(sent({ vendor }, {}, { messages }).messages.slice(0, 2), kept.slice(0, 2));
      assert.equal(sent({ vendor }, {}, { messages }).messages.length, 3);
      const called = [...user("hi"), { ...calledOf("call_1")[0], content: "" }];
      assert.equal(sent({ vendor }, {}, { messages: called }).messages.length, 2);
    });

  it("vllm: stay, because a chat template may demand that roles alternate", () =>
    assert.deepEqual(sent({ vendor: "vllm" }, {}, { messages }).messages, messages));
});

describe("a chat template that demands alternating roles", () => {
  const sentWith = (traits: object, messages: readonly object[]) =>
    sent({ vendor: "vllm", base_url: "http://x", alternates: true, ...traits }, {}, { messages })
      .messages;
  const READ = { role: "assistant", content: "I have read the results." };
  const RESULT = { role: "tool", tool_call_id: "call_1", content: "sunny" };

  it("gets the user's messages as one, and an answer to each result of a call", () => {
    const told = { role: "developer", content: "Be polite." };
    const messages = [told, ...user("hi"), ...user("on"), ...calledOf("call_1"), RESULT];
    const begun = [
      { role: "system", content: "Be polite." },
      ...user("hi\n\non"),
      ...calledOf("call_1"),
      RESULT,
    ];
    assert.deepEqual(sentWith({}, messages), begun);
    assert.deepEqual(sentWith({}, [...messages, ...user("a"), ...user("b")]), [
      ...[...begun, READ, ...user("a\n\nb")],
    ]);
    assert.deepEqual(sentWith({}, [...messages, told]), [
      ...[...begun, READ, ...user("(What follows is an instruction of the system.)\nBe polite.")],
    ]);
    assert.deepEqual(sentWith({ alternates: false }, [...user("a"), ...user("b")]), [
      ...[...user("a"), ...user("b")],
    ]);
  });

  it("gets them as one also where a system message or an empty answer was between them", () => {
    const told = { role: "system", content: "Be brief." };
    const empty = { role: "assistant", content: "" };
    const messages = [...user("a"), told, ...user("b"), empty, ...user("c")];
    const joined = user(
      "a\n\n(What follows is an instruction of the system.)\nBe brief.\n\nb\n\nc",
    );
    for (const vendor of ["vllm", "openrouter", "generic"])
      assert.deepEqual(sentWith({ vendor }, messages), joined, vendor);
  });

  it("gets a word of the user before a greeting of the assistant", () => {
    const greeted = [{ role: "assistant", content: "Hello!" }, ...user("hi")];
    const told = { role: "system", content: "Be polite." };
    const opened = [...user("(The conversation begins.)"), ...greeted];
    assert.deepEqual(sentWith({}, greeted), opened);
    assert.deepEqual(sentWith({}, [told, ...greeted]), [told, ...opened]);
    assert.deepEqual(sentWith({ alternates: false }, greeted), greeted);
  });

  it("gets images with the text around them", () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };
    const shown = { role: "user", content: [{ type: "text", text: "See" }, image] };
    assert.deepEqual(
      sentWith({ supports: ["images"] }, [...user("a"), shown, ...user("b")])[0].content,
      [
        { type: "text", text: "a" },
        { type: "text", text: "\n\nSee" },
        image,
        { type: "text", text: "\n\nb" },
      ],
    );
  });
});

describe("tools", () => {
  /** The ids of calls as a vendor is sent them; the results have the same. */
  const idsAt = (vendor: string, ids: readonly string[]): readonly string[] => {
    const messages = [...user("hi"), ...calledOf(...ids)];
    const [, turn, ...answers] = sent({ vendor }, {}, { messages }).messages;
    const back = turn.tool_calls.map(({ id }: Json) => id);
    assert.deepEqual(
      answers.map(({ tool_call_id: id }: Json) => id),
      back,
    );
    return back;
  };

  it("have ids of nine letters and digits at Mistral, the same in each request", () => {
    const [id = ""] = idsAt("mistral", ["call_1"]);
    assert.match(id, /^[a-z\d]{9}$/);
    assert.deepEqual(idsAt("mistral", ["call_1"]), [id]);
  });

  it("have the ids that the provider stated, but for one that it stated of several", () => {
    const [one, two, same] = ["functions.f:0", "functions.f:1", "functions.f:0"].map(usableId);
    assert.deepEqual(idsAt("moonshot", [one!, two!]), ["functions.f:0", "functions.f:1"]);
    assert.deepEqual(idsAt("moonshot", [one!, same!]), [one, same]);
  });

  it("have shorter ids at OpenAI where another provider's are too long, the same in each request", () => {
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

  it("are followed by a word of the model before the user's at Mistral", () => {
    const messages = [...user("hi"), ...calledOf("call_1"), ...user("and?")];
    const back = sent({ vendor: "mistral" }, {}, { messages }).messages;
    assert.deepEqual(
      back.map(({ role }: Json) => role),
      ["user", "assistant", "tool", "assistant", "user"],
    );
  });

  it("leave no thinking where the model refuses both together", () => {
    const thinker = { reasoning: true };
    for (const [vendor, upstream_model, choice, thinks] of [
      ["openai", "gpt-5.1", "auto", true],
      ["openai", "gpt-5.5", "auto", false],
      ["azure", "gpt-5.4-mini", "none", false],
      ["deepseek", "m", "auto", true],
      ["deepseek", "m", "required", false],
      ["qwen", "m", named("g"), false],
      ["moonshot", "m", "required", false],
      ["groq", "m", "required", true],
    ] as const) {
      const base_url = vendor === "azure" ? "https://acme.openai.azure.com" : undefined;
      const fields = { tools: TOOLS, tool_choice: choice, ...ON };
      const body = sent({ vendor, base_url }, { ...thinker, upstream_model }, fields);
      const { thinking, enable_thinking, reasoning_effort } = body;
      const isOn = thinking?.type === "enabled" || enable_thinking || reasoning_effort === "medium";
      assert.equal(Boolean(isOn), thinks, `${vendor} ${upstream_model}`);
    }
    const alone = sent({ vendor: "openai" }, { ...thinker, upstream_model: "gpt-5.5" }, ON);
    assert.equal(alone["reasoning_effort"], "medium", "without tools it thinks");
  });
});

describe("the beginning of an answer", () => {
  for (const [vendor, inMessage, inBody] of [
    ["mistral", { prefix: true }, {}],
    ["qwen", { partial: true }, {}],
    ["vllm", {}, { continue_final_message: true, add_generation_prompt: false }],
    ["openai", {}, {}],
  ] as const)
    it(`is marked as ${vendor} wants it, whoever began it`, () => {
      const begun = { role: "assistant", content: "So" };
      const body = sent({ vendor }, {}, { messages: [...user("hi"), begun] });
      assert.deepEqual(body["messages"].at(-1), { ...begun, ...inMessage });
      assert.deepEqual({ ...body, ...inBody }, body);
    });

  it("is one text, without the client's mark for the cache", () => {
    const target = targetOf({ vendor: "vllm", cache_control: true }, {});
    const chat = chatRequest({ model: "x", messages: [{ role: "assistant", content: "So " }] });
    const marked = [{ type: "text" as const, text: "So ", cache_control: { type: "ephemeral" } }];
    const messages = [{ ...chat.messages[0]!, marked }];
    const { body } = compatibleDialect.request({ ...chat, messages }, target);
    assert.equal((body as Json)["messages"].at(-1).content, "So");
  });
});

describe("settings", () => {
  /** Neither is sent where the client is silent. */
  const QUIET = { defaults_to_one: ["temperature", "top_p"] };

  // What the table of vendors advises for some of their models: thinking off, on, and deep.
  const ADVISED: [model: string, vendor: string, settings: Json, out: [Json, Json, Json]][] = [
    ["Magistral", "mistral", { thinking: "always" }, [{}, {}, effort("high")]],
    ["Kimi K3", "moonshot", K3, [{}, effort("high"), effort("max")]],
  ];
  for (const [model, vendor, settings, out] of ADVISED)
    it(`for ${model}: thinking off, on, and deep`, () => {
      const row = { reasoning: true, extra: {}, ...QUIET, ...settings };
      for (const [at, fields] of [{}, ON, { ...ON, reasoning_effort: "max" }].entries())
        assert.deepEqual(asked(vendor, row, fields), out[at]);
    });
});
