// What each vendor of OpenAI-compatible models is asked, what it is never asked, and how its
// answers are read: its row of providers.md, written down here once more by hand, through a running
// gateway. Then what is not one vendor's: thinking between tags, models that only stream, and
// settings of a provider or a model against the vendor's.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it, type TestContext } from "node:test";
import { checkConfig, formats } from "../../../support/config.ts";
import { compatibleDialect } from "../../../../src/extensions/providers/compatible/index.ts";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { ValidationError } from "../../../../src/core/schema/checker.ts";
import {
  assemble,
  assertSound,
  configFor,
  json,
  merge,
  readStream,
  user,
} from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import {
  chunk,
  completion,
  endless,
  event,
  rawStream,
  reset,
  speak,
  status,
  stream,
  usageChunk,
  USAGE,
  type Asked,
  type Behaviour,
} from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import {
  createMemoryGateway,
  memoryProvider,
  type MemoryGateway,
} from "../../../support/memory.ts";

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
const NOISE = {
  metadata: { a: "b" },
  store: true,
  n: 1,
  service_tier: "flex",
  enable_thinking: true,
};
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
  readonly choices?: "any" | "auto";
  /** The field in which tool calls are sent back with their thinking. */
  readonly echo?: string;
}

/**
 * What a request may need that not every vendor has: the fields, and the path that a refusal must
 * name.
 */
const NEEDS = {
  stop: [{ stop: "END" }, "stop"],
  frequency_penalty: [{ frequency_penalty: 0.1 }, "frequency_penalty"],
  presence_penalty: [{ presence_penalty: -0.1 }, "presence_penalty"],
  required: [{ tools: TOOLS, tool_choice: "required" }, "tool_choice"],
  named: [{ tools: TOOLS, tool_choice: named("g") }, "tool_choice"],
  tools: [{ tools: TOOLS }, "tools"],
  logprobs: [{ logprobs: true }, "logprobs"],
  json_object: [{ response_format: { type: "json_object" } }, "response_format"],
  json_schema: [{ response_format: SCHEMA }, "response_format"],
  images: [
    {
      messages: [
        {
          role: "user",
          content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }],
        },
      ],
    },
    "messages[0].content",
  ],
  audio: [
    {
      messages: [
        {
          role: "user",
          content: [{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }],
        },
      ],
    },
    "messages[0].content",
  ],
  files: [
    { messages: [{ role: "user", content: [{ type: "file", file: { file_data: "AA==" } }] }] },
    "messages[0].content",
  ],
} as const satisfies Record<string, readonly [object, string]>;
const MEDIA = ["images", "audio", "files"] as const;
const PENALTIES = ["frequency_penalty", "presence_penalty"] as const;
const EFFORTS = ["low", "medium", "xhigh"] as const;
/** Both defaults of the contract. */
const SILENT = { temperature: 1, top_p: 1 };
/** For tests of something else: neither is sent where the client is silent. */
const QUIET = { defaults_to_one: ["temperature", "top_p"] };

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

const VENDORS: Record<string, Row> = {
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
  vllm: { ...TEMPLATE, takes: ["logit_bias"] },
  sglang: { ...TEMPLATE, takes: ["logit_bias"], thinker: { separate_reasoning: true } },
  "llama.cpp": { ...TEMPLATE, takes: ["logit_bias"] },
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

/** A gateway before one vendor. `ask` must succeed, and gives what the provider was asked. */
async function vendorBench(t: TestContext, vendor: string, over: object = {}) {
  const provider = memoryProvider(
    t,
    Object.fromEntries([...Object.keys(KINDS), "able"].map((name) => [name, speak("Hi.")])),
  );
  const gw = createMemoryGateway(
    configFor(
      provider.url,
      [],
      merge(
        {
          providers: {
            shop: { vendor, base_url: provider.url },
            other: { dialect: "openai", base_url: provider.url },
          },
          models: {
            ...Object.fromEntries(
              Object.entries(KINDS).map(([kind, settings]) => [
                kind,
                { provider: "shop", ...settings },
              ]),
            ),
            able: {
              provider: "other",
              supports: [
                "tools",
                "json_object",
                "json_schema",
                "logprobs",
                "images",
                "audio",
                "files",
              ],
            },
          },
          aliases: Object.fromEntries(
            Object.keys(KINDS).map((kind) => [`auto/${kind}`, { models: [kind, "able"] }]),
          ),
        },
        over,
      ) as object,
    ),
  );
  return { ...provider, gw, ask: (fields: object) => outgoing(gw, provider.asked, fields) };
}

/** Asks, and must succeed: the provider was asked once, for this; but for messages. */
async function outgoing(gw: MemoryGateway, asked: readonly Asked[], fields: object): Promise<Json> {
  const before = asked.length;
  const response = await gw.chat({ model: "thinker", messages: user("hi"), ...fields });
  const text = await response.text();
  assert.equal(response.status, 200, `${JSON.stringify(fields)}: ${text}`);
  assert.equal(asked.length, before + 1);
  const { messages, ...rest } = asked[before]!.body;
  assert.ok(Array.isArray(messages) && messages.length > 0);
  return rest;
}

/** `all` with what stands in `changes`, without what is null there. */
const changed = (...all: Json[]): Json =>
  Object.fromEntries(
    Object.entries(Object.assign({}, ...all)).filter(([, value]) => value !== null),
  );
const only = (fields: Json, names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, fields[name]]));
const without = (fields: Json, refused: readonly string[]): Json => {
  const gone = refused.flatMap((need) =>
    need === "logprobs"
      ? ["logprobs", "top_logprobs"]
      : [need === "json_schema" ? "response_format" : need],
  );
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !gone.includes(name)));
};

type Shop = Awaited<ReturnType<typeof vendorBench>>;

/** Asks by name, then by alias: the answers, and how many of them the provider was asked for. */
async function askTwice({ gw, asked }: Shop, kind: Kind, need: keyof typeof NEEDS) {
  const request = { messages: user("hi"), ...NEEDS[need][0] };
  const before = asked.length;
  const direct = await gw.chat({ model: kind, ...request });
  const directCalls = asked.length - before;
  const shared = await gw.chat({ model: `auto/${kind}`, ...request });
  const calls = [directCalls, asked.length - before];
  return { direct, served: [shared.status, (await json(shared)).model], calls };
}

/** The model has what the request needs. */
async function assertFit(shop: Shop, kind: Kind, need: keyof typeof NEEDS): Promise<void> {
  const { direct, served, calls } = await askTwice(shop, kind, need);
  const about = `${kind} ${need}`;
  assert.deepEqual([direct.status, (await json(direct)).error], [200, undefined], about);
  assert.deepEqual(served, [200, kind], about);
  assert.deepEqual(calls, [1, 2], about);
}

/** The model lacks what the request needs; the alias has another one. */
async function assertUnfit(shop: Shop, kind: Kind, need: keyof typeof NEEDS): Promise<void> {
  const { direct, served, calls } = await askTwice(shop, kind, need);
  const { error } = await json(direct);
  const about = `${kind} ${need}`;
  assert.deepEqual(
    [direct.status, error?.code, error?.param, error?.type],
    [400, "unsupported_value", NEEDS[need][1], "invalid_request_error"],
    about,
  );
  assert.deepEqual(served, [200, "able"], about);
  assert.deepEqual(calls, [0, 1], about);
}

describe("what a vendor is asked", { concurrency: 2 }, () => {
  for (const [vendor, row] of Object.entries(VENDORS)) {
    const {
      sent = {},
      thinker = {},
      takes = [],
      thinkerTakes = takes,
      refused = [],
      thinkerRefused = [],
      off,
      on,
      depth,
      efforts,
      usageUnasked,
      choices,
      echo,
      silent = SILENT,
    } = row;
    const refusals = (kind: Kind): readonly string[] => [
      ...refused,
      ...MEDIA,
      ...(kind === "plain" ? [] : thinkerRefused),
    ];
    const thinks = (kind: Kind, fields: Json = {}) =>
      kind === "plain" ? {} : { ...without(thinker, Object.keys(ALL)), ...fields };

    it(`${vendor}: everything at once, whole and streamed`, async (t) => {
      const { ask } = await vendorBench(t, vendor);
      for (const kind of ["thinker", "plain"] as const) {
        const can = without(ALL, refusals(kind));
        const out = changed(
          can,
          { user: PSEUDONYM },
          sent,
          { plain: {}, thinker }[kind],
          thinks(kind, on),
          { model: kind },
          only(FURTHER, { plain: takes, thinker: thinkerTakes }[kind]),
        );
        assert.deepEqual(await ask({ model: kind, ...can, ...NOISE, ...FURTHER, ...ON }), out);
        const streamed = {
          ...out,
          stream: true,
          ...(!usageUnasked && { stream_options: { include_usage: true } }),
        };
        for (const usage of [
          {},
          { stream_options: { include_usage: true } },
          { stream_options: { include_usage: false } },
        ])
          assert.deepEqual(
            await ask({ model: kind, ...can, ...NOISE, ...FURTHER, ...ON, stream: true, ...usage }),
            streamed,
          );
      }
    });

    it(`${vendor}: tool_choice`, async (t) => {
      const { ask } = await vendorBench(t, vendor);
      const none = choices === "auto" ? {} : { tools: TOOLS, tool_choice: "none" };
      const expected: [choice: Json, out: Json][] = [
        [{}, none],
        [{ tool_choice: "none" }, none],
        [{ tool_choice: "auto" }, { tools: TOOLS, tool_choice: "auto" }],
        ...(choices === "auto"
          ? []
          : ([
              [{ tool_choice: "required" }, { tools: TOOLS, tool_choice: choices ?? "required" }],
              [
                { tool_choice: named("g") },
                choices
                  ? { tools: [fn("g")], tool_choice: "any" }
                  : { tools: TOOLS, tool_choice: named("g") },
              ],
            ] as [Json, Json][])),
      ];
      for (const [choice, out] of expected)
        assert.deepEqual(await ask({ model: "plain", tools: TOOLS, ...choice }), {
          model: "plain",
          ...silent,
          ...out,
        });
      assert.deepEqual(await ask({ model: "plain", tools: [] }), { model: "plain", ...silent });
    });

    it(`${vendor}: thinking off, and where it has no switch`, async (t) => {
      const { ask } = await vendorBench(t, vendor);
      const thinker = { ...silent, ...thinks("thinker") };
      for (const fields of [
        {},
        { thinking: null, temperature: null, top_p: null },
        { thinking: { type: "disabled" } },
        { thinking: { type: "disabled" }, reasoning_effort: "high" },
        { reasoning_effort: "none" },
      ]) {
        assert.deepEqual(await ask(fields), { model: "thinker", ...thinker, ...off });
        assert.deepEqual(await ask({ ...fields, model: "stubborn" }), {
          model: "stubborn",
          ...thinker,
        });
      }
      for (const asking of [ON, {}])
        assert.deepEqual(await ask({ model: "plain", ...asking, reasoning_effort: "high" }), {
          model: "plain",
          ...silent,
        });
    });

    it(`${vendor}: thinking on, and its depth`, async (t) => {
      const { ask } = await vendorBench(t, vendor);
      const thinker = { ...silent, ...thinks("thinker") };
      const depths = efforts?.map((each) => depth!(each)) ?? EFFORTS.map(() => on);
      for (const model of ["thinker", "stubborn"]) {
        assert.deepEqual(await ask({ model, ...ON }), { model, ...thinker, ...on });
        for (const [at, reasoning_effort] of EFFORTS.entries()) {
          const deep = depths[at];
          // The depth alone asks for thinking as well.
          for (const asking of [ON, {}])
            assert.deepEqual(await ask({ model, ...asking, reasoning_effort }), {
              model,
              ...thinker,
              ...deep,
            });
        }
        assert.deepEqual(await ask({ model, ...ON, reasoning_effort: "none" }), {
          model,
          ...thinker,
          ...on,
        });
      }
    });

    it(`${vendor}: tool calls that come back, with their thinking or without`, async (t) => {
      const { asked, ask } = await vendorBench(t, vendor);
      const call = (id: string) => ({
        id,
        type: "function",
        function: { name: "f", arguments: "{}" },
      });
      const turn = (id: string, thought: Json) => [
        { role: "assistant", content: null, ...thought, tool_calls: [call(id)] },
        { role: "tool", tool_call_id: id, content: "1" },
      ];
      const messages = (first: Json, second: Json, last: Json) => [
        ...user("hi"),
        ...turn("a", first),
        ...turn("b", second),
        { role: "assistant", content: "so", ...last },
        ...user("go on"),
      ];
      const given = messages({ reasoning_content: "hm" }, {}, { reasoning_content: "aha" });
      const bare = messages({}, {}, {});
      const echoed = echo ? messages({ [echo]: "hm" }, { [echo]: "" }, {}) : bare;
      for (const [fields, out] of [
        [ON, echoed],
        [{}, bare],
        [{ ...ON, model: "plain" }, bare],
        [{ ...ON, model: "stubborn" }, echoed],
        [{ model: "stubborn" }, echoed],
      ] as const) {
        await ask({ messages: given, ...fields });
        assert.deepEqual(asked.at(-1)!.body["messages"], out);
      }
    });

    it(`${vendor}: what it cannot do is refused, or asked of the next candidate; what it can do it is asked`, async (t) => {
      const shop = await vendorBench(t, vendor);
      for (const kind of ["thinker", "plain"] as const)
        for (const need of Object.keys(NEEDS) as (keyof typeof NEEDS)[])
          await (refusals(kind).includes(need) ? assertUnfit : assertFit)(shop, kind, need);
    });

    it(`${vendor}: a penalty of 0, no stop and unused top_logprobs ask for nothing`, async (t) => {
      const { ask } = await vendorBench(t, vendor);
      const nothing = {
        frequency_penalty: 0,
        presence_penalty: 0,
        stop: [],
        logprobs: false,
        top_logprobs: 2,
      };
      for (const kind of ["thinker", "plain"] as const) {
        const penalties = PENALTIES.filter((name) => !refusals(kind).includes(name)).map((name) => [
          name,
          0,
        ]);
        assert.deepEqual(await ask({ model: kind, ...nothing }), {
          model: kind,
          ...silent,
          ...thinks(kind, off),
          ...Object.fromEntries(penalties),
        });
      }
    });
  }

  it("moonshot: models that are switched otherwise, or not at all, get their thinking back all the same", async (t) => {
    const k3 = {
      thinking: "reasoning_effort",
      efforts: ["low", "high", "max"],
      thinking_off: false,
    };
    const { asked, ask } = await vendorBench(t, "moonshot", {
      models: { thinker: k3, stubborn: { thinking: "always" } },
    });
    const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
    const messages = [
      ...user("hi"),
      { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [call] },
      { role: "tool", tool_call_id: "a", content: "1" },
    ];
    for (const fields of [ON, {}, { ...ON, model: "stubborn" }, { model: "stubborn" }]) {
      await ask({ messages, ...fields });
      assert.deepEqual(asked.at(-1)!.body["messages"], messages);
    }
  });
});

/** A vendor's answer, whole and streamed. */
const both =
  (message: object, events: readonly object[], finish = "stop", more: object = {}): Behaviour =>
  (asked) =>
    asked.body["stream"]
      ? stream([
          ...events,
          chunk({}, finish, more),
          ...("usage" in more || "x_groq" in more ? [] : [usageChunk()]),
        ])(asked)
      : status(200, completion(message, finish, more))(asked);
const whole = (asked: Asked) => !asked.body["stream"];

/** Asks the model "m" of the vendor, whole and streamed: both must say the same. */
async function answers(
  t: TestContext,
  vendor: string,
  behaviour: Behaviour,
  { settings = {}, request = ON as object } = {},
) {
  const provider = memoryProvider(t, { m: behaviour });
  const gw = createMemoryGateway(
    configFor(provider.url, ["m"], {
      providers: { shop: { vendor, base_url: provider.url } },
      models: { m: { provider: "shop", ...settings } },
    }),
  );
  const ask = (more: object) => gw.chat({ model: "m", messages: user("hi"), ...request, ...more });
  const response = await ask({});
  const reply = await json(response);
  assert.equal(response.status, 200, JSON.stringify(reply));
  const { chunks, done, error } = await readStream(
    await ask({ stream: true, stream_options: { include_usage: true } }),
  );
  assertSound(chunks, "m");
  assert.deepEqual([done, error], [true, undefined]);
  const { message, finish_reason, logprobs } = assemble(chunks);
  const [choice] = reply.choices;
  // A stream must decide before it knows that no text will come, and what was generated has no ids
  // of the provider's.
  const plain = ({ content, tool_calls, ...rest }: Json) => ({
    content: content || null,
    ...rest,
    ...(tool_calls && {
      tool_calls: tool_calls.map((call: Json) => ({ ...call, id: idOf(call["id"]) })),
    }),
  });
  assert.deepEqual(plain(message), plain(choice.message));
  assert.deepEqual([finish_reason, chunks.at(-1)!.usage], [choice.finish_reason, reply.usage]);
  return {
    message: plain(choice.message),
    finish: choice.finish_reason,
    usage: reply.usage,
    logprobs: choice.logprobs,
    streamed: logprobs,
  };
}
const idOf = (id: string) => (/^call_[0-9a-f]{24}$/.test(id) ? "generated" : id);

describe("thinking in a vendor's answer", { concurrency: 2 }, () => {
  const piece = (type: string, text: string) =>
    type === "thinking" ? { type, thinking: [{ type: "text", text }] } : { type, text };
  const field = (name: string) =>
    both({ content: "Hello.", [name]: "Let me see." }, [
      chunk({ role: "assistant", content: "", [name]: null }),
      chunk({ [name]: "Let " }),
      chunk({ content: null, [name]: "me see." }),
      chunk({ content: "Hel" }),
      chunk({ content: "lo." }),
    ]);
  const CASES: [vendor: string, name: string, behaviour: Behaviour][] = [
    ...["deepseek", "vllm", "sglang", "llama.cpp", "qwen", "moonshot", "zhipu", "xai"].map(
      (vendor) =>
        [vendor, "reasoning_content", field("reasoning_content")] as [string, string, Behaviour],
    ),
    ...["groq", "openrouter", "vllm", "ollama"].map(
      (vendor) => [vendor, "reasoning", field("reasoning")] as [string, string, Behaviour],
    ),
    [
      "openrouter",
      "reasoning beside reasoning_details",
      both(
        {
          content: "Hello.",
          reasoning: "Let me see.",
          reasoning_details: [{ type: "reasoning.text", text: "Let me see." }],
        },
        [
          chunk({
            content: "",
            reasoning: "Let me see.",
            reasoning_details: [{ type: "reasoning.text", text: "Let me see." }],
          }),
          chunk({ content: "Hello.", reasoning: null }),
        ],
      ),
    ],
    [
      "vllm",
      "both fields, of which it is said once",
      both({ content: "Hello.", reasoning: "Let me see.", reasoning_content: "Let me see." }, [
        chunk({ reasoning: "Let me see.", reasoning_content: "Let me see." }),
        chunk({ content: "Hello." }),
      ]),
    ],
    [
      "mistral",
      "parts of the content",
      both(
        {
          content: [
            piece("thinking", "Let me "),
            piece("thinking", "see."),
            piece("text", "Hello."),
          ],
        },
        [
          chunk({ role: "assistant", content: "" }),
          chunk({ content: [piece("thinking", "Let ")] }),
          chunk({ content: [piece("thinking", "me see.")] }),
          chunk({ content: [piece("text", "Hel")] }),
          chunk({ content: "lo." }),
        ],
      ),
    ],
    [
      "xai",
      "deltas that come twice",
      both({ content: "Hello.", reasoning_content: "Let me see." }, [
        chunk({ reasoning_content: "Let " }),
        chunk({ reasoning_content: "Let " }),
        chunk({ reasoning_content: "me see." }),
        chunk({ reasoning_content: "me see." }),
        chunk({ content: "Hello." }),
      ]),
    ],
  ];
  for (const [vendor, name, behaviour] of CASES) {
    it(`${vendor}: ${name}`, async (t) => {
      assert.deepEqual((await answers(t, vendor, behaviour)).message, {
        role: "assistant",
        content: "Hello.",
        reasoning_content: "Let me see.",
      });
      assert.deepEqual((await answers(t, vendor, behaviour, { request: {} })).message, {
        role: "assistant",
        content: "Hello.",
      });
    });
  }

  it("elsewhere, and in texts, what comes twice is meant twice", async (t) => {
    const twice = (name: string) =>
      both({ content: "haha", reasoning_content: name === "content" ? "x" : "haha" }, [
        chunk({ reasoning_content: name === "content" ? "x" : "ha" }),
        ...(name === "content" ? [] : [chunk({ reasoning_content: "ha" })]),
        chunk({ content: "ha" }),
        chunk({ content: "ha" }),
      ]);
    assert.equal(
      (await answers(t, "deepseek", twice("reasoning"))).message["reasoning_content"],
      "haha",
    );
    assert.equal((await answers(t, "xai", twice("content"))).message["content"], "haha");
  });
});

describe("usage in a vendor's answer", { concurrency: 2 }, () => {
  const base = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 };
  /** `written`: what was written to the cache, where some was. */
  const counts = (hit: number, reasoning: number, completion = 7, written = 0) => ({
    prompt_tokens: 20,
    completion_tokens: completion,
    total_tokens: 20 + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: 20 - hit,
    prompt_tokens_details: {
      cached_tokens: hit,
      ...(written > 0 && { cache_write_tokens: written }),
    },
    completion_tokens_details: { reasoning_tokens: reasoning },
  });
  const hi = [chunk({ content: "Hi." })];
  const last =
    (usage: object, more: object = { usage: null }): Behaviour =>
    (asked) =>
      (whole(asked)
        ? status(200, completion({ content: "Hi." }, "stop", { usage }))
        : stream([
            ...hi.map((each) => ({ ...each, ...more })),
            chunk({}, "stop", more),
            usageChunk(usage),
          ]))(asked);
  /** On the chunk of the finish, in a field of the chunk or of its choice. */
  const finishing =
    (place: (usage: object) => object, usage: object): Behaviour =>
    (asked) =>
      (whole(asked)
        ? status(200, completion({ content: "Hi." }, "stop", { usage }))
        : stream([...hi, merge(chunk({}, "stop"), place(usage)) as object]))(asked);
  const inChoice = (usage: object) => ({
    choices: [{ index: 0, delta: {}, finish_reason: "stop", usage }],
  });

  const CASES: [name: string, vendor: string, behaviour: Behaviour, usage: object][] = [
    [
      "details inside the counts",
      "openai",
      last({
        ...base,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      counts(8, 3, 7, 2),
    ],
    [
      "DeepSeek's own cache counts",
      "deepseek",
      last({
        ...base,
        prompt_cache_hit_tokens: 8,
        prompt_cache_miss_tokens: 12,
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      counts(8, 3),
    ],
    [
      "on the last chunk that has choices",
      "mistral",
      finishing((usage) => ({ usage }), base),
      counts(0, 0),
    ],
    [
      "num_cached_tokens",
      "mistral",
      finishing((usage) => ({ usage }), {
        ...base,
        num_cached_tokens: 8,
        prompt_tokens_details: null,
      }),
      counts(8, 0),
    ],
    [
      "num_cached_tokens goes before details",
      "mistral",
      last({ ...base, num_cached_tokens: 8, prompt_tokens_details: { cached_tokens: 5 } }),
      counts(8, 0),
    ],
    [
      "prompt_token_details",
      "mistral",
      last({ ...base, prompt_token_details: { cached_tokens: 8 } }),
      counts(8, 0),
    ],
    [
      "x_groq.usage",
      "groq",
      finishing((usage) => ({ x_groq: { id: "req_1", usage } }), base),
      counts(0, 0),
    ],
    [
      "x_groq.usage beside a null",
      "groq",
      finishing((usage) => ({ usage: null, x_groq: { usage } }), base),
      counts(0, 0),
    ],
    [
      "x_groq.usage, then the usual place",
      "groq",
      both(
        { content: "Hi." },
        [
          ...hi,
          chunk({}, "stop", { x_groq: { usage: base } }),
          usageChunk({ ...base, completion_tokens: 7 }),
        ],
        "stop",
        { usage: base },
      ),
      counts(0, 0),
    ],
    ["cached_tokens at the top", "moonshot", last({ ...base, cached_tokens: 8 }), counts(8, 0)],
    [
      "choices[0].usage",
      "moonshot",
      finishing(inChoice, { ...base, cached_tokens: 8 }),
      counts(8, 0),
    ],
    [
      "choices[0].usage, then the usual place",
      "moonshot",
      (asked) =>
        (whole(asked)
          ? last({ ...base, cached_tokens: 8 })
          : stream([
              ...hi,
              merge(chunk({}, "stop"), inChoice({ ...base, completion_tokens: 6 })) as object,
              usageChunk({ ...base, cached_tokens: 8 }),
            ]))(asked),
      counts(8, 0),
    ],
    [
      "reasoning beside completion_tokens",
      "xai",
      last({
        ...base,
        total_tokens: 30,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      counts(8, 3, 10),
    ],
    [
      "thoughts that only the total knows of",
      "gemini-openai",
      last({ ...base, total_tokens: 89 }),
      counts(0, 62, 69),
    ],
    [
      "thoughts of which the total knows more than the details",
      "gemini-openai",
      last({ ...base, total_tokens: 89, completion_tokens_details: { reasoning_tokens: 3 } }),
      counts(0, 65, 69),
    ],
    [
      "reasoning beside completion_tokens, and nothing more in the total",
      "gemini-openai",
      last({ ...base, total_tokens: 30, completion_tokens_details: { reasoning_tokens: 3 } }),
      counts(0, 3, 10),
    ],
    [
      "a total below the two counts, or none",
      "gemini-openai",
      last({ prompt_tokens: 20, completion_tokens: 7, total_tokens: 20 }),
      counts(0, 0),
    ],
    [
      "a total that is larger at a vendor that hides nothing in it",
      "openai",
      last({ ...base, total_tokens: 89 }),
      counts(0, 0),
    ],
    [
      "a part of the prompt that made the cache",
      "qwen",
      last({
        ...base,
        prompt_tokens_details: { cached_tokens: 8, cache_creation_input_tokens: 4 },
      }),
      counts(8, 0, 7, 4),
    ],
    [
      "a part that was written, beside what it cost",
      "openrouter",
      last({
        ...base,
        cost: 0.001,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 12 },
      }),
      counts(8, 0, 7, 12),
    ],
    [
      "more written than there was to write",
      "openrouter",
      last({ ...base, prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 13 } }),
      counts(8, 0, 7, 12),
    ],
    [
      "counts and a price",
      "openrouter",
      last({
        ...base,
        cost: 0.001,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 3 },
      }),
      counts(8, 3),
    ],
    ["nothing but the two counts", "ollama", last(base), counts(0, 0)],
    [
      "details that are null",
      "vllm",
      last({ ...base, prompt_tokens_details: null, completion_tokens_details: null }),
      counts(0, 0),
    ],
    [
      "running counts in every chunk",
      "vllm",
      (asked) =>
        (whole(asked)
          ? last(base)
          : stream([
              chunk({ content: "Hi" }, null, { usage: { ...base, completion_tokens: 1 } }),
              chunk({ content: "." }, null, { usage: { ...base, completion_tokens: 2 } }),
              chunk({}, "stop"),
              usageChunk(base),
            ]))(asked),
      counts(0, 0),
    ],
    [
      "counts of 0 until the last",
      "sglang",
      last(base, { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
      counts(0, 0),
    ],
    [
      "beside timings",
      "llama.cpp",
      last(
        { ...base, prompt_tokens_details: { cached_tokens: 8 } },
        { timings: { cache_n: 8, prompt_n: 12 } },
      ),
      counts(8, 0),
    ],
    [
      "unasked",
      "zhipu",
      finishing((usage) => ({ usage }), { ...base, prompt_tokens_details: { cached_tokens: 8 } }),
      counts(8, 0),
    ],
    [
      "more cached than there was, more reasoning than was said",
      "generic",
      last({ ...base, cached_tokens: 21, completion_tokens_details: { reasoning_tokens: 8 } }),
      counts(20, 7),
    ],
  ];
  for (const [name, vendor, behaviour, usage] of CASES) {
    it(`${vendor}: ${name}`, async (t) =>
      assert.deepEqual((await answers(t, vendor, behaviour)).usage, usage));
  }
});

describe("tool calls in a vendor's answer", { concurrency: 2 }, () => {
  const ARGS = '{"city": "\u00d8sl\u00f8"}';
  const call = (more: Json, name?: string, args?: unknown) => ({
    ...more,
    ...(name && { type: "function" }),
    function: { ...(name && { name }), ...(args !== undefined && { arguments: args }) },
  });
  const deltas = (...calls: object[]) => calls.map((each) => chunk({ tool_calls: [each] }));
  const two = (ids: readonly [string, string], args: readonly [string, string] = [ARGS, "{}"]) => [
    { id: ids[0], type: "function", function: { name: "f", arguments: args[0] } },
    { id: ids[1], type: "function", function: { name: "g", arguments: args[1] } },
  ];
  const known = ["a", "b"] as const;
  const unknown = ["generated", "generated"] as const;
  const wholeTwo = [call({ id: "a" }, "f", ARGS), call({ id: "b" }, "g", "{}")];
  const idless = [call({}, "f", ARGS), call({}, "g", "{}")];

  const CASES: [
    name: string,
    vendor: string,
    message: object,
    events: object[],
    ids: readonly [string, string],
    args?: readonly [string, string],
  ][] = [
    [
      "in fragments",
      "openai",
      { content: null, tool_calls: wholeTwo },
      deltas(
        call({ index: 0, id: "a" }, "f", ""),
        call({ index: 0 }, undefined, ARGS.slice(0, 9)),
        call({ index: 0 }, undefined, ARGS.slice(9)),
        call({ index: 1, id: "b" }, "g", "{}"),
      ),
      known,
    ],
    [
      "each whole in one delta",
      "ollama",
      { content: "", tool_calls: wholeTwo.map((each, index) => ({ index, ...each })) },
      deltas(call({ index: 0, id: "a" }, "f", ARGS), call({ index: 1, id: "b" }, "g", "{}")),
      known,
    ],
    [
      "all in one delta",
      "ollama",
      { content: "", tool_calls: wholeTwo },
      [
        chunk({
          role: "assistant",
          content: "",
          tool_calls: wholeTwo.map((each, index) => ({ index, ...each })),
        }),
      ],
      known,
    ],
    [
      "all with index 0",
      "ollama",
      { content: "", tool_calls: wholeTwo.map((each) => ({ index: 0, ...each })) },
      deltas(call({ index: 0, id: "a" }, "f", ARGS), call({ index: 0, id: "b" }, "g", "{}")),
      known,
    ],
    [
      "all with index 0, in fragments",
      "qwen",
      { content: "", tool_calls: wholeTwo.map((each) => ({ index: 0, ...each })) },
      deltas(
        call({ index: 0, id: "a" }, "f", ARGS.slice(0, 9)),
        call({ index: 0, id: "" }, undefined, ARGS.slice(9)),
        call({ index: 0, id: "b" }, "g", "{"),
        call({ index: 0, id: "" }, undefined, "}"),
      ),
      known,
    ],
    [
      "all with index 0 and without ids",
      "ollama",
      { content: "", tool_calls: idless.map((each) => ({ index: 0, ...each })) },
      deltas(call({ index: 0 }, "f", ARGS), call({ index: 0 }, "g", "{}")),
      unknown,
    ],
    [
      "without indexes",
      "mistral",
      { content: "", tool_calls: wholeTwo },
      [chunk({ content: "", tool_calls: wholeTwo })],
      known,
    ],
    [
      "without ids",
      "sglang",
      { content: null, tool_calls: idless },
      deltas(call({ index: 0 }, "f", ARGS), call({ index: 1 }, "g", "{}")),
      unknown,
    ],
    [
      "with ids that are null",
      "vllm",
      { content: null, tool_calls: idless.map((each) => ({ ...each, id: null })) },
      deltas(call({ index: 0, id: null }, "f", ARGS), call({ index: 1, id: null }, "g", "{}")),
      unknown,
    ],
    [
      "without ids and indexes",
      "llama.cpp",
      { content: null, tool_calls: idless },
      deltas(
        call({}, "f", ARGS.slice(0, 9)),
        call({}, undefined, ARGS.slice(9)),
        call({}, "g", "{}"),
      ),
      unknown,
    ],
    [
      "arguments that are objects",
      "ollama",
      {
        content: "",
        tool_calls: [call({ id: "a" }, "f", JSON.parse(ARGS)), call({ id: "b" }, "g", {})],
      },
      deltas(
        call({ index: 0, id: "a" }, "f", JSON.parse(ARGS)),
        call({ index: 1, id: "b" }, "g", {}),
      ),
      known,
      [JSON.stringify(JSON.parse(ARGS)), "{}"],
    ],
    [
      "arguments that are empty, null or missing",
      "zhipu",
      { content: "", tool_calls: [call({ id: "a" }, "f", null), call({ id: "b" }, "g")] },
      deltas(call({ index: 0, id: "a" }, "f", ""), call({ index: 1, id: "b" }, "g", null)),
      known,
      ["{}", "{}"],
    ],
  ];
  for (const [name, vendor, message, events, ids, args] of CASES) {
    for (const finish of ["tool_calls", "stop"]) {
      it(`${vendor}: ${name}; it says ${finish}`, async (t) => {
        const reply = await answers(t, vendor, both(message, events, finish), {
          request: { tools: TOOLS, tool_choice: "auto" },
        });
        assert.deepEqual(
          [reply.message, reply.finish],
          [{ role: "assistant", content: null, tool_calls: two(ids, args) }, "tool_calls"],
        );
      });
    }
  }
});

describe("how a vendor's answer ends", { concurrency: 2 }, () => {
  const ENDS: readonly (readonly [word: string, vendor: string, finish: string])[] = [
    ["stop", "openai", "stop"],
    ["length", "openai", "length"],
    ["content_filter", "openai", "content_filter"],
    ["eos", "sglang", "stop"],
    ["end_turn", "openrouter", "stop"],
    ["model_length", "mistral", "length"],
    ["max_tokens", "openrouter", "length"],
    ["model_context_window_exceeded", "zhipu", "length"],
    ["sensitive", "zhipu", "content_filter"],
    ["refusal", "openrouter", "content_filter"],
    ["tool_calls", "openai", "tool_calls"],
    ["function_call", "openai", "tool_calls"],
    ["something_new", "vllm", "stop"],
  ];
  for (const [word, vendor, finish] of ENDS) {
    it(`${vendor}: ${word} is ${finish}`, async (t) => {
      const behaviour = both({ content: "Hi." }, [chunk({ content: "Hi." })], word);
      assert.equal((await answers(t, vendor, behaviour)).finish, finish);
    });
  }

  for (const [word, vendor] of [
    ["insufficient_system_resource", "deepseek"],
    ["network_error", "zhipu"],
    ["abort", "sglang"],
    ["error", "openrouter"],
  ] as const) {
    it(`${vendor}: ${word} is a failure: hidden by another candidate while that can be, else told`, async (t) => {
      const failed = both({ content: "" }, [], word);
      const { gw, asked } = await failing(t, vendor, (each) =>
        (each.body["messages"][0].content === "late"
          ? both({ content: "H" }, [chunk({ content: "H" })], word)
          : failed)(each),
      );
      assert.deepEqual(await outcome(gw, { model: "m" }), [503, "upstream_error"]);
      assert.deepEqual(await outcome(gw, { model: "m", stream: true }), [503, "upstream_error"]);
      assert.deepEqual(await outcome(gw, { model: "both" }), [200, "ok"]);
      assert.deepEqual(await outcome(gw, { model: "both", stream: true }), [200, "ok"]);
      assert.deepEqual(await outcome(gw, { model: "both", messages: user("late") }), [200, "ok"]);
      const { chunks, done, error } = await readStream(
        await gw.chat({ model: "m", stream: true, messages: user("late") }),
      );
      assert.deepEqual(
        [assemble(chunks).message["content"], done, error?.code],
        ["H", false, "upstream_error"],
      );
      assert.equal(asked.length, 9);
    });
  }
});

/** The vendor's model "m", and "both": an alias for it and then "ok", which has no more room. */
async function failing(
  t: TestContext,
  vendor: string,
  behaviour: Behaviour,
  settings: object = {},
) {
  const provider = memoryProvider(t, { m: behaviour, ok: speak("Fine.") });
  const over = {
    providers: {
      shop: { vendor, base_url: provider.url },
      other: { dialect: "openai", base_url: provider.url },
    },
    models: {
      m: { provider: "shop", context_tokens: 9_000, ...settings },
      ok: { provider: "other", context_tokens: 9_000 },
    },
    aliases: { both: { models: ["m", "ok"] } },
  };
  return { ...provider, gw: createMemoryGateway(configFor(provider.url, ["m"], over)) };
}

/** Status, and the model that served or the code of the error, whole or streamed. */
async function outcome(gw: MemoryGateway, request: object): Promise<[number, string]> {
  const response = await gw.chat({ messages: user("hi"), ...request });
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const { chunks, done, error } = await readStream(response);
    assert.equal(done, error === undefined);
    return [response.status, error?.code ?? chunks[0]!.model];
  }
  const body = await json(response);
  return [response.status, body.error?.code ?? body.model];
}

describe("a vendor's errors", { concurrency: 2 }, () => {
  const OVERLOADED = [503, "model_overloaded"] as const;
  const BROKEN = [503, "upstream_error"] as const;
  const CLOSED = [503, "model_unavailable"] as const;
  const TOO_LONG = [400, "context_length_exceeded"] as const;
  const FILTERED = [400, "content_filter"] as const;
  const REJECTED = [400, "upstream_rejected"] as const;
  const xaiForbidden = "The caller does not have permission to execute the specified operation";

  // `status` 200: as a whole body, as an event before the reply, and as one in its middle.
  const CASES: [
    name: string,
    vendor: string,
    code: number,
    body: object,
    expected: readonly [number, string],
  ][] = [
    [
      "a number for a code",
      "openrouter",
      200,
      { error: { code: 429, message: "Rate limited" }, user_id: "u" },
      OVERLOADED,
    ],
    [
      "a number for a code, of the model behind it",
      "openrouter",
      200,
      {
        error: { code: 502, message: "Provider returned error", metadata: { provider_name: "x" } },
      },
      BROKEN,
    ],
    [
      "an empty purse",
      "openrouter",
      200,
      { error: { code: 402, message: "Insufficient credits" } },
      CLOSED,
    ],
    [
      "a number for a code",
      "vllm",
      200,
      {
        error: {
          code: 400,
          message: "This model's maximum context length is 8 tokens",
          type: "BadRequestError",
          param: null,
        },
      },
      TOO_LONG,
    ],
    [
      "a number for a code, flat",
      "vllm",
      200,
      {
        object: "error",
        message: "engine is dead",
        type: "InternalServerError",
        param: null,
        code: 500,
      },
      BROKEN,
    ],
    [
      "flat",
      "sglang",
      200,
      {
        object: "error",
        message: "The input (9 tokens) is longer than the model's context length (8 tokens).",
        type: "BadRequestError",
        param: null,
        code: 400,
      },
      TOO_LONG,
    ],
    [
      "a word for a code",
      "zhipu",
      200,
      { error: { code: "1234", message: "Network error" } },
      BROKEN,
    ],
    ["a code beside the text", "xai", 200, { code: "internal", error: "Something broke" }, BROKEN],
    ["a bare text", "generic", 200, { error: "out of memory" }, BROKEN],
    [
      "a type that says it all",
      "groq",
      200,
      { error: { message: "no", type: "invalid_request_error", code: "context_length_exceeded" } },
      TOO_LONG,
    ],

    [
      "flat",
      "mistral",
      400,
      {
        object: "error",
        message: "Prompt contains 9 tokens, too large for model with 8 maximum context length",
        type: "invalid_request_error",
        param: null,
        code: "3051",
      },
      TOO_LONG,
    ],
    [
      "flat",
      "mistral",
      429,
      {
        object: "error",
        message: "Service tier capacity exceeded for this model.",
        type: "service_tier_capacity_exceeded",
        param: null,
        code: "3505",
      },
      OVERLOADED,
    ],
    [
      "a list of details",
      "mistral",
      422,
      {
        detail: [
          { type: "extra_forbidden", loc: ["body", "x"], msg: "Extra inputs are not permitted" },
        ],
      },
      REJECTED,
    ],
    [
      "details for a message",
      "mistral",
      422,
      {
        object: "error",
        message: { detail: [{ loc: ["body"], msg: "no" }] },
        type: "invalid_request_error",
        param: null,
        code: null,
      },
      REJECTED,
    ],
    ["a bare message", "mistral", 401, { message: "Unauthorized", request_id: "x" }, CLOSED],
    [
      "an empty purse, said in Chinese",
      "zhipu",
      429,
      { error: { code: "1113", message: "\u4f59\u989d\u4e0d\u8db3" } },
      CLOSED,
    ],
    [
      "an empty purse, in a 429",
      "zhipu",
      429,
      {
        error: {
          code: "1113",
          message: "Insufficient balance or no resource package. Please recharge.",
        },
      },
      CLOSED,
    ],
    [
      "too many at once",
      "zhipu",
      429,
      { error: { code: "1302", message: "High concurrency usage of this API" } },
      OVERLOADED,
    ],
    [
      "a wrong parameter",
      "zhipu",
      400,
      { error: { code: "1210", message: "API call parameter error" } },
      REJECTED,
    ],
    [
      "a code beside the text",
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error: "Argument not supported on this model: stop",
      },
      REJECTED,
    ],
    [
      "a code beside the text, that says it all",
      "xai",
      400,
      { code: "context_length_exceeded", error: "no" },
      TOO_LONG,
    ],
    [
      "a wrong key, in a 400",
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error:
          "Incorrect API key provided: sk-***. You can obtain an API key from https://console.x.ai.",
      },
      CLOSED,
    ],
    [
      "no credits",
      "xai",
      403,
      { code: xaiForbidden, error: "Your team doesn't have any credits yet." },
      CLOSED,
    ],
    [
      "an empty purse",
      "deepseek",
      402,
      {
        error: {
          message: "Insufficient Balance",
          type: "unknown_error",
          param: null,
          code: "invalid_request_error",
        },
      },
      CLOSED,
    ],
    [
      "a number for a code",
      "llama.cpp",
      400,
      {
        error: {
          code: 400,
          message: "the request exceeds the available context size",
          type: "exceed_context_size_error",
          n_prompt_tokens: 9,
          n_ctx: 8,
        },
      },
      TOO_LONG,
    ],
    [
      "loading",
      "llama.cpp",
      503,
      { error: { code: 503, message: "Loading model", type: "unavailable_error" } },
      OVERLOADED,
    ],
    [
      "a number for a code",
      "openrouter",
      429,
      { error: { code: 429, message: "Rate limit exceeded" } },
      OVERLOADED,
    ],
    [
      "a quota",
      "openai",
      429,
      {
        error: {
          code: "insufficient_quota",
          type: "insufficient_quota",
          message: "You exceeded your current quota",
        },
      },
      CLOSED,
    ],
    [
      "an inspection of the prompt",
      "qwen",
      400,
      {
        error: {
          code: "data_inspection_failed",
          type: "data_inspection_failed",
          message: "Input data may contain inappropriate content.",
        },
      },
      FILTERED,
    ],

    [
      "a prompt that is too long",
      "xai",
      400,
      {
        code: "Client specified an invalid argument",
        error:
          "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
      },
      TOO_LONG,
    ],
    [
      "a prompt that is too long",
      "zhipu",
      400,
      { error: { code: "1261", message: "Prompt exceeds max length" } },
      TOO_LONG,
    ],
    [
      "a prompt that is too long, otherwise",
      "zhipu",
      400,
      { error: { code: "1210", message: "tokens in request more than max tokens allowed" } },
      TOO_LONG,
    ],
    [
      "a prompt that is too long",
      "moonshot",
      400,
      {
        error: {
          message:
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)",
          type: "invalid_request_error",
        },
      },
      TOO_LONG,
    ],
    [
      "a prompt that is too long",
      "qwen",
      400,
      {
        error: {
          code: "invalid_parameter_error",
          message:
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
          param: null,
          type: "invalid_request_error",
        },
      },
      TOO_LONG,
    ],
    [
      "a prompt that is refused, in a 403",
      "xai",
      403,
      {
        code: xaiForbidden,
        error:
          "Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO",
      },
      FILTERED,
    ],
    [
      "a prompt that is refused, in a 403",
      "openrouter",
      403,
      {
        error: {
          code: 403,
          message: "Your chosen model requires moderation and your input was flagged",
          metadata: { reasons: ["violence"], flagged_input: "x" },
        },
      },
      FILTERED,
    ],
  ];
  for (const [name, vendor, code, body, expected] of CASES) {
    it(`${vendor}: ${code}, ${name}: ${expected[1]}`, async (t) => {
      const early: Behaviour = (asked) =>
        (code === 200 && !whole(asked) ? stream([body]) : status(code, body))(asked);
      const { gw } = await failing(t, vendor, early);
      for (const streamed of [false, true]) {
        assert.deepEqual(await outcome(gw, { model: "m", stream: streamed }), expected);
        // Another candidate helps against faults of the provider, and none that has not more room
        // against those of the client.
        assert.deepEqual(
          await outcome(gw, { model: "both", stream: streamed }),
          expected[0] === 503 ? [200, "ok"] : expected,
        );
      }
      if (code !== 200) return;
      const cut = stream([chunk({ content: "H" }), { ...chunk({}, "error"), ...body }]);
      assert.deepEqual(
        await outcome((await failing(t, vendor, cut)).gw, { model: "both", stream: true }),
        [200, expected[1]],
      );
    });
  }

  it("openrouter: an error in a choice of a 200", async (t) => {
    const body = {
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "" },
          finish_reason: "error",
          error: { code: 503, message: "overloaded" },
        },
      ],
    };
    const { gw } = await failing(t, "openrouter", status(200, body));
    assert.deepEqual(await outcome(gw, { model: "m" }), [503, "model_overloaded"]);
    assert.deepEqual(await outcome(gw, { model: "both" }), [200, "ok"]);
  });

  it("a prompt that a filter refuses with a 403 opens no breaker", async (t) => {
    const body = { code: xaiForbidden, error: "Content violates usage guidelines." };
    const { gw } = await failing(t, "xai", (asked) =>
      (asked.body["messages"][0].content === "bad" ? status(403, body) : speak("Hi."))(asked),
    );
    assert.deepEqual(await outcome(gw, { model: "m", messages: user("bad") }), FILTERED);
    assert.deepEqual(await outcome(gw, { model: "m" }), [200, "m"]);
  });

  it("comments and blank lines between a stream's events are nothing", async (t) => {
    const noise = [": OPENROUTER PROCESSING\n\n", "\n\n", ": keep-alive\n\n", ":\n\n"];
    const events = [
      chunk({ content: "Hel" }),
      chunk({ content: "lo." }),
      chunk({}, "stop"),
      usageChunk(),
      "[DONE]",
    ];
    const text = events.map((each, at) => noise.slice(at % 4).join("") + event(each)).join("");
    for (const [vendor, size] of [
      ["openrouter", Infinity],
      ["deepseek", 7],
    ] as const) {
      const behaviour: Behaviour = (asked) =>
        (whole(asked)
          ? status(200, `\n\n${JSON.stringify(completion({ content: "Hello." }))}`)
          : rawStream(text, size))(asked);
      assert.equal((await answers(t, vendor, behaviour)).message["content"], "Hello.");
    }
  });
});

describe("thinking between tags", { concurrency: 2 }, () => {
  const CASES: [name: string, said: string, reasoning: string, content: string][] = [
    ["thinking, then text", "<think>Let me.</think>Hello.", "Let me.", "Hello."],
    ["white space before the tag", "\n <think>a</think>b", "a", "b"],
    ["white space around", "<think>\na\n</think>\n\nb", "\na\n", "\n\nb"],
    ["no thinking", "Hello.", "", "Hello."],
    ["an empty thought", "<think></think>b", "", "b"],
    ["a text that speaks of the tags", "Use <think>x</think> so.", "", "Use <think>x</think> so."],
    [
      "a text that speaks of them after its thinking",
      "<think>a</think>b <think>c</think>",
      "a",
      "b <think>c</think>",
    ],
    ["a thought that speaks of the opening tag", "<think>a<think>b</think>c", "a<think>b", "c"],
    ["a tag that is never closed", "<think>a b", "a b", ""],
    ["a part of the closing tag at the end", "<think>a</thin", "a</thin", ""],
    ["a part of the opening tag alone", "<thi", "", "<thi"],
    ["what only begins like the tags", "<thing>a</thing>", "", "<thing>a</thing>"],
    ["what only begins like the closing tag", "<think>a</</thi</think>b", "a</</thi", "b"],
    ["nothing but white space", " \n", "", " \n"],
    ["letters of several bytes", "<think>\u00fc\u4f60</think>\u00d8", "\u00fc\u4f60", "\u00d8"],
  ];
  /**
   * Letter by letter, and all ways to say it in two pieces, in three if it is short; some of them
   * are empty.
   */
  function splits(said: string): readonly (readonly string[])[] {
    const cuts = Array.from({ length: said.length + 1 }, (_, at) => at);
    return [
      said.split(""),
      ...cuts.flatMap((a) =>
        cuts
          .filter((b) => b === a || (b > a && said.length < 18))
          .map((b) => [said.slice(0, a), said.slice(a, b), said.slice(b)]),
      ),
    ];
  }
  const say = (pieces: readonly string[], finish: object[] = [chunk({}, "stop")]) => [
    ...pieces.map((content) => chunk({ content })),
    ...finish,
  ];

  const traits = traitsOf(
    formats.presets,
    { vendor: "generic" },
    { reasoning: true, think_tags: true },
  );
  /** The thoughts and the text that the decoder makes of these pieces. */
  function decoded(pieces: readonly string[]): [reasoning: string, content: string] {
    const decoder = compatibleDialect.decoder({ upstreamModel: "m", reasoning: true, traits });
    const parts = say(pieces).flatMap((each) => decoder.push(each));
    const joined = (type: "reasoning" | "text") =>
      parts.map((part) => (part.type === type ? part.text : "")).join("");
    return [joined("reasoning"), joined("text")];
  }

  for (const [name, said, reasoning, content] of CASES) {
    it(`${name}: in any pieces`, () => {
      for (const pieces of splits(said))
        assert.deepEqual(decoded(pieces), [reasoning, content], JSON.stringify(pieces));
    });

    it(`${name}: whole, and streamed ${LONG ? "in any pieces" : "letter by letter"}`, async (t) => {
      const cuts = LONG ? splits(said) : [said.split("")];
      let pieces: readonly string[] = [said];
      const provider = memoryProvider(t, {
        m: (asked) =>
          (whole(asked) ? status(200, completion({ content: said })) : stream(say(pieces)))(asked),
      });
      const gw = createMemoryGateway(
        configFor(provider.url, ["m"], { models: { m: { think_tags: true } } }),
      );
      const ask = (more: object) => gw.chat({ model: "m", messages: user("hi"), ...more });
      for (const thinking of [ON, {}]) {
        const shown = thinking === ON ? { reasoning_content: reasoning } : {};
        const [choice] = (await json(await ask(thinking))).choices;
        assert.deepEqual(choice.message, { role: "assistant", content, ...shown });
        for (pieces of cuts) {
          const { chunks, done } = await readStream(await ask({ ...thinking, stream: true }));
          assertSound(chunks, "m");
          const { message } = assemble(chunks);
          assert.deepEqual(
            [{ ...message, content: message["content"] ?? "" }, done],
            [{ role: "assistant", content, ...shown }, true],
            JSON.stringify(pieces),
          );
        }
      }
    });
  }

  it("any cut of the bytes", async (t) => {
    const [, said, reasoning, content] = CASES.at(-1)!;
    const bytes = Buffer.from(
      say([said.slice(0, 3), said.slice(3, 12), said.slice(12)])
        .map(event)
        .join(""),
    );
    let size = 1;
    const provider = memoryProvider(t, { m: (asked) => rawStream(bytes, size)(asked) });
    const gw = createMemoryGateway(
      configFor(provider.url, ["m"], { models: { m: { think_tags: true } } }),
    );
    for (const each of [1, 2, 3, 5, 7, 11, 64, 101]) {
      size = each;
      const { message } = assemble(
        (await readStream(await gw.chat({ model: "m", stream: true, messages: user("hi"), ...ON })))
          .chunks,
      );
      assert.deepEqual(
        message,
        { role: "assistant", content, reasoning_content: reasoning },
        `${size} bytes at a time`,
      );
    }
  });

  it("the end in the last piece, a whole reply without an end, and a stream that breaks off inside a tag", async (t) => {
    const provider = memoryProvider(t, {
      last: (asked) => stream([chunk({ content: "<think>a</think>b</thi" }, "stop")])(asked),
      open: (asked) =>
        (whole(asked)
          ? status(200, completion({ content: "<think>a</thi" }, null))
          : stream(say(["<think>a</thi"], []), "eof"))(asked),
      begun: (asked) => stream(say(["<thi"], []), "cut")(asked),
    });
    const names = ["last", "open", "begun"];
    const gw = createMemoryGateway(
      configFor(provider.url, names, {
        models: Object.fromEntries(names.map((name) => [name, { think_tags: true }])),
      }),
    );
    const ask = (model: string, stream: boolean) =>
      gw.chat({ model, stream, messages: user("hi"), ...ON });
    assert.deepEqual(assemble((await readStream(await ask("last", true))).chunks).message, {
      role: "assistant",
      content: "b</thi",
      reasoning_content: "a",
    });
    assert.deepEqual((await json(await ask("open", false))).choices[0].message, {
      role: "assistant",
      content: "",
      reasoning_content: "a</thi",
    });
    const { chunks, done, error } = await readStream(await ask("open", true));
    assert.deepEqual(
      [assemble(chunks).message["reasoning_content"], done, error?.code],
      ["a", false, "upstream_error"],
    );
    assert.deepEqual(await outcome(gw, { model: "begun", stream: true }), [503, "upstream_error"]);
  });

  it("are text where the model is not said to have them", async (t) => {
    const behaviour = both({ content: "<think>a</think>b" }, [
      chunk({ content: "<think>a</think>b" }),
    ]);
    assert.deepEqual((await answers(t, "vllm", behaviour)).message, {
      role: "assistant",
      content: "<think>a</think>b",
      reasoning_content: "",
    });
    assert.deepEqual(
      (await answers(t, "vllm", behaviour, { settings: { think_tags: true } })).message,
      { role: "assistant", content: "b", reasoning_content: "a" },
    );
  });

  it("is not given away by log probabilities: a model with tags has none", async (t) => {
    const { gw, asked } = await vendorBench(t, "vllm", {
      models: { thinker: { think_tags: true } },
    });
    const { error } = await json(
      await gw.chat({ model: "thinker", messages: user("hi"), logprobs: true }),
    );
    assert.deepEqual([error.code, error.param, asked.length], ["unsupported_value", "logprobs", 0]);
  });
});

describe("models that only stream", { concurrency: 2 }, () => {
  const setting = { stream_only: true };
  const events = [
    chunk({ role: "assistant", content: "" }),
    chunk({ reasoning_content: "Let " }),
    chunk({ reasoning_content: "me." }),
    chunk({ content: "Hel" }),
    {
      ...chunk({ content: "lo." }),
      choices: [
        {
          index: 0,
          delta: { content: "lo." },
          finish_reason: null,
          logprobs: { content: [{ token: "lo.", logprob: -1, bytes: null, top_logprobs: [] }] },
        },
      ],
    },
    chunk({
      tool_calls: [
        { index: 0, id: "a", type: "function", function: { name: "f", arguments: '{"x"' } },
      ],
    }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
    chunk({}, "tool_calls"),
    usageChunk(),
  ];

  it("a stream without end is cut at the size that whole replies are cut at", async (t) => {
    const provider = memoryProvider(t, {
      m: endless("text/event-stream", event(chunk({ content: "x".repeat(1024 * 1024) }))),
    });
    const gw = createMemoryGateway(configFor(provider.url, ["m"], { models: { m: setting } }));
    const response = await gw.chat({ model: "m", messages: user("hi") });
    assert.deepEqual([response.status, (await json(response)).error.code], [503, "upstream_error"]);
    await waitFor(
      () =>
        gw.diagnostics.some(({ detail }) =>
          String(detail).includes("a reply of more than 16777216 bytes"),
        ),
      "the diagnostic line",
    );
  });

  it("a whole reply is what the stream says; what goes out is a request for a stream, with its usage", async (t) => {
    const provider = memoryProvider(t, { m: stream(events) });
    const over = (vendor: string) => ({
      providers: { shop: { vendor, base_url: provider.url } },
      models: { m: { provider: "shop", ...setting } },
    });
    for (const [vendor, usage] of [
      ["qwen", { stream_options: { include_usage: true } }],
      ["zhipu", {}],
    ] as const) {
      const gw = createMemoryGateway(configFor(provider.url, ["m"], over(vendor)));
      const request = {
        model: "m",
        messages: user("hi"),
        ...ON,
        tools: TOOLS,
        tool_choice: "auto",
        ...(vendor === "qwen" && { logprobs: true }),
      };
      const response = await gw.chat(request);
      assert.deepEqual(
        [response.status, response.headers.get("content-type")],
        [200, "application/json"],
      );
      const {
        choices: [choice],
        usage: counted,
      } = await json(response);
      const { body, headers } = provider.asked.at(-1)!;
      assert.equal(headers.accept, "text/event-stream");
      assert.deepEqual(
        [body["stream"], body["stream_options"]],
        [true, "stream_options" in usage ? usage.stream_options : undefined],
      );
      const { chunks } = await readStream(
        await gw.chat({ ...request, stream: true, stream_options: { include_usage: true } }),
      );
      assert.deepEqual(provider.asked.at(-1)!.body, body);
      const streamed = assemble(chunks);
      assert.deepEqual(choice.message, {
        role: "assistant",
        content: "Hello.",
        reasoning_content: "Let me.",
        tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: '{"x":1}' } }],
      });
      assert.deepEqual(
        [choice.message, choice.finish_reason, choice.logprobs?.content ?? [], counted],
        [streamed.message, streamed.finish_reason, streamed.logprobs, chunks.at(-1)!.usage],
      );
      assert.deepEqual(
        [
          choice.logprobs?.content.length,
          counted.completion_tokens,
          counted.prompt_cache_hit_tokens,
        ],
        [vendor === "qwen" ? 1 : undefined, USAGE.completion_tokens, 8],
      );
    }
  });

  it("a model that streams and answers whole is asked for what the client wants", async (t) => {
    const { asked, ask } = await vendorBench(t, "qwen");
    for (const streamed of [false, true]) {
      assert.equal((await ask({ stream: streamed }))["stream"], streamed || undefined);
      assert.equal(
        asked.at(-1)!.headers.accept,
        streamed ? "text/event-stream" : "application/json",
      );
    }
  });

  const half = [chunk({ content: "Hel" }), chunk({ content: "lo." })];
  const FAILURES: [name: string, behaviour: Behaviour, expected: [number, string]][] = [
    ["a reset in its middle", stream(half, "cut"), [503, "upstream_error"]],
    ["an end without a finish", stream(half, "eof"), [503, "upstream_error"]],
    ["[DONE] without a finish", stream(half), [503, "upstream_error"]],
    [
      "an error event in its middle",
      stream([...half, { error: { code: 429, message: "slow down" } }]),
      [503, "model_overloaded"],
    ],
    [
      "an error event of the client's making",
      stream([...half, { error: { code: 400, message: "content_filter" } }]),
      [400, "content_filter"],
    ],
    [
      "a finish that is a failure",
      stream([...half, chunk({}, "network_error")]),
      [503, "upstream_error"],
    ],
    ["a reset at once", reset, [503, "upstream_error"]],
    ["a refusal", status(400, { error: { message: "no" } }), [400, "upstream_rejected"]],
  ];
  for (const [name, behaviour, expected] of FAILURES) {
    it(`${name}: nobody has seen any of it, so an alias asks the next one`, async (t) => {
      const { gw } = await failing(t, "qwen", behaviour, setting);
      assert.deepEqual(await outcome(gw, { model: "m" }), expected);
      assert.deepEqual(
        await outcome(gw, { model: "both" }),
        expected[0] === 503 ? [200, "ok"] : expected,
      );
    });
  }

  it("what breaks after the finish takes nothing from the reply; a whole answer all the same is taken", async (t) => {
    for (const behaviour of [
      stream([...half, chunk({}, "stop")], "cut"),
      status(200, completion({ content: "Hello." })),
    ]) {
      const { gw } = await failing(t, "qwen", behaviour, setting);
      const {
        choices: [{ message, finish_reason }],
      } = await json(await gw.chat({ model: "m", messages: user("hi") }));
      assert.deepEqual([message.content, finish_reason], ["Hello.", "stop"]);
    }
  });

  it("thinking between tags", async (t) => {
    const { gw } = await failing(
      t,
      "qwen",
      stream([chunk({ content: "<thi" }), chunk({ content: "nk>a</think>b" }), chunk({}, "stop")]),
      { ...setting, think_tags: true, reasoning: true },
    );
    const {
      choices: [{ message }],
    } = await json(await gw.chat({ model: "m", messages: user("hi"), ...ON }));
    assert.deepEqual(message, { role: "assistant", content: "b", reasoning_content: "a" });
  });
});

describe("settings", { concurrency: 2 }, () => {
  // Each: the field, what the vendor says, what the provider and what the model say otherwise, with
  // a request that shows it.
  const LAYERS: [
    field: string,
    vendor: string,
    provider: unknown,
    model: unknown,
    request: Json,
    sent: readonly [vendor: Json, provider: Json, model: Json],
  ][] = [
    [
      "thinking",
      "deepseek",
      "enable_thinking",
      "reasoning",
      ON,
      [ON, { enable_thinking: true }, { reasoning: { enabled: true } }],
    ],
    [
      "thinking",
      "openai",
      "none",
      "chat_template_kwargs",
      {},
      [effort("none"), {}, template(false)],
    ],
    [
      "thinking_off",
      "qwen",
      false,
      true,
      {},
      [{ enable_thinking: false }, {}, { enable_thinking: false }],
    ],
    [
      "efforts",
      "xai",
      ["minimal"],
      ["max", "default"],
      { ...ON, reasoning_effort: "medium" },
      [effort("medium"), effort("minimal"), effort("max")],
    ],
    [
      "max_temperature",
      "zhipu",
      0.5,
      1.5,
      { temperature: 2 },
      [{ temperature: 1 }, { temperature: 0.5 }, { temperature: 1.5 }],
    ],
    [
      "omit",
      "moonshot",
      [],
      ["seed"],
      { temperature: 1, seed: 1 },
      [{ seed: 1 }, { temperature: 1, seed: 1 }, { temperature: 1 }],
    ],
    [
      "rename",
      "mistral",
      { max_tokens: "limit" },
      {},
      { seed: 1, max_tokens: 2 },
      [
        { random_seed: 1, max_tokens: 2 },
        { seed: 1, limit: 2 },
        { seed: 1, max_tokens: 2 },
      ],
    ],
    [
      "extra",
      "sglang",
      { top_k: 3 },
      { separate_reasoning: false },
      {},
      [{ separate_reasoning: true }, { top_k: 3 }, { separate_reasoning: false }],
    ],
    [
      "tool_choice",
      "ollama",
      "any",
      "all",
      { tools: TOOLS, tool_choice: named("f") },
      [
        { refused: "tool_choice" },
        { tools: [fn("f")], tool_choice: "any" },
        { tools: TOOLS, tool_choice: named("f") },
      ],
    ],
    [
      "supports",
      "moonshot",
      ["json_schema"],
      ["tools"],
      { response_format: SCHEMA },
      [{ refused: "response_format" }, { response_format: SCHEMA }, { refused: "response_format" }],
    ],
    [
      "omit",
      "xai",
      ["stop"],
      [],
      { stop: ["x"] },
      [{ refused: "stop" }, { refused: "stop" }, { stop: ["x"] }],
    ],
    [
      "ask_usage",
      "zhipu",
      true,
      false,
      { stream: true },
      [
        { stream: true },
        { stream: true, stream_options: { include_usage: true } },
        { stream: true },
      ],
    ],
    [
      "stream_only",
      "qwen",
      true,
      false,
      {},
      [{}, { stream: true, stream_options: { include_usage: true } }, {}],
    ],
    [
      "max_output_tokens",
      "openai",
      50,
      70,
      { max_tokens: 60 },
      [{ max_completion_tokens: 60 }, { max_completion_tokens: 50 }, { max_completion_tokens: 60 }],
    ],
    ["max_output_tokens", "vllm", 50, 20, {}, [{}, {}, {}]],
    [
      "defaults_to_one",
      "mistral",
      ["temperature", "top_p"],
      [],
      {},
      [{ temperature: 1 }, {}, { temperature: 1, top_p: 1 }],
    ],
    [
      "temperature_or_top_p",
      "vllm",
      true,
      false,
      { temperature: 0.5, top_p: 0.5 },
      [{ temperature: 0.5, top_p: 0.5 }, { temperature: 0.5 }, { temperature: 0.5, top_p: 0.5 }],
    ],
  ];
  for (const [field, vendor, provider, model, request, sent] of LAYERS) {
    it(`${field} of ${vendor}: the provider's goes before the vendor's, the model's before both`, async (t) => {
      const switches: Json =
        field.startsWith("thinking") || field === "efforts" ? {} : { thinking: "none" };
      const server = memoryProvider(
        t,
        Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, speak("Hi.")])),
      );
      const shop = { vendor, base_url: server.url };
      const quiet = field === "defaults_to_one" ? {} : QUIET;
      const gw = createMemoryGateway(
        configFor(server.url, [], {
          providers: {
            shop: { ...shop, ...quiet },
            own: { ...shop, ...quiet, [field]: provider },
          },
          models: {
            a: { provider: "shop", reasoning: true, ...switches },
            b: { provider: "own", reasoning: true, ...switches },
            c: { provider: "own", reasoning: true, [field]: model, ...switches },
            d: { provider: "shop", reasoning: true, [field]: model, ...switches },
          },
        }),
      );
      for (const [name, expected] of [
        ["a", sent[0]],
        ["b", sent[1]],
        ["c", sent[2]],
        ["d", sent[2]],
      ] as const) {
        if ("refused" in expected) {
          const { error } = await json(
            await gw.chat({ model: name, messages: user("hi"), ...request }),
          );
          assert.deepEqual(
            [error.code, error.param],
            ["unsupported_value", expected["refused"]],
            name,
          );
        } else
          assert.deepEqual(
            await outgoing(gw, server.asked, { model: name, ...request }),
            { model: name, ...expected },
            name,
          );
      }
    });
  }

  it("echo, think_tags and repeats_reasoning too", async (t) => {
    const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
    const turn = (thought: Json) => [
      { role: "assistant", content: null, ...thought, tool_calls: [call] },
      { role: "tool", tool_call_id: "a", content: "1" },
    ];
    const said = stream([
      chunk({ reasoning_content: "r" }),
      chunk({ reasoning_content: "r" }),
      chunk({ content: "<think>t</think>x" }),
      chunk({}, "stop"),
    ]);
    const server = memoryProvider(t, { a: said, b: said, c: said });
    const shop = { vendor: "deepseek", base_url: server.url };
    const gw = createMemoryGateway(
      configFor(server.url, [], {
        providers: {
          shop,
          own: { ...shop, echo: "reasoning", think_tags: true, repeats_reasoning: true },
        },
        models: {
          a: { provider: "shop", reasoning: true },
          b: { provider: "own", reasoning: true },
          c: {
            provider: "own",
            reasoning: true,
            echo: "none",
            think_tags: false,
            repeats_reasoning: false,
          },
        },
      }),
    );
    for (const [model, echoed, content, reasoning_content] of [
      ["a", { reasoning_content: "hm" }, "<think>t</think>x", "rr"],
      ["b", { reasoning: "hm" }, "x", "rt"],
      ["c", {}, "<think>t</think>x", "rr"],
    ] as const) {
      const messages = turn({ reasoning_content: "hm" });
      const { chunks } = await readStream(await gw.chat({ model, stream: true, messages, ...ON }));
      assert.deepEqual(server.asked.at(-1)!.body["messages"], turn(echoed));
      assert.deepEqual(assemble(chunks).message, { role: "assistant", content, reasoning_content });
    }
  });

  it("a vendor's address is where nothing else is said; its dialect need not be said", () => {
    const { providers } = checkConfig(
      configFor("http://127.0.0.1:1", [], {
        providers: {
          usual: { vendor: "groq", api_key: "sk-g" },
          same: { vendor: "xai", dialect: "openai", api_key: "sk-x" },
        },
      }),
      {},
    );
    assert.deepEqual(
      [
        providers.get("usual")!.base_url,
        providers.get("usual")!.dialect,
        providers.get("same")!.base_url,
      ],
      ["https://api.groq.com/openai/v1", "openai", "https://api.x.ai/v1"],
    );
  });

  // What the table of vendors advises for some of their models.
  const ADVISED: [
    model: string,
    vendor: string,
    settings: Json,
    off: Json,
    on: Json,
    deep: Json,
  ][] = [
    [
      "Qwen at Groq",
      "groq",
      { efforts: ["default"] },
      effort("none"),
      effort("default"),
      effort("default"),
    ],
    ["Magistral", "mistral", { thinking: "always" }, {}, {}, effort("high")],
    [
      "Kimi K3",
      "moonshot",
      { thinking: "reasoning_effort", efforts: ["low", "high", "max"], thinking_off: false },
      {},
      effort("high"),
      effort("max"),
    ],
    ["GLM-5.2", "zhipu", { efforts: ["high", "max"] }, TYPE.off, ON, { ...ON, ...effort("max") }],
  ];
  for (const [model, vendor, settings, off, on, deep] of ADVISED) {
    it(`for ${model}: thinking off, on, and deep`, async (t) => {
      const { ask } = await vendorBench(t, vendor, {
        models: { thinker: { extra: {}, ...QUIET, ...settings } },
      });
      for (const [fields, out] of [
        [{}, off],
        [ON, on],
        [{ ...ON, reasoning_effort: "max" }, deep],
      ])
        assert.deepEqual(await ask(fields as Json), { model: "thinker", ...out });
    });
  }

  const FAULTS: [what: string, over: object, path: string][] = [
    ["an unknown vendor", { providers: { p: { vendor: "acme" } } }, "providers.p.vendor"],
    [
      "neither vendor nor dialect",
      { providers: { p: { base_url: "http://x" } } },
      "providers.p.dialect",
    ],
    [
      "a vendor of another dialect",
      { providers: { p: { vendor: "deepseek", dialect: "anthropic", api_key: "sk-p" } } },
      "providers.p.dialect",
    ],
    [
      "no address where none is usual",
      { providers: { p: { vendor: "llama.cpp" } } },
      "providers.p.base_url",
    ],
    [
      "no address for any server",
      { providers: { p: { dialect: "openai" } } },
      "providers.p.base_url",
    ],
    [
      "a switch that nobody knows",
      { providers: { p: { vendor: "vllm", thinking: "on" } } },
      "providers.p.thinking",
    ],
    [
      "a switch of another dialect",
      { providers: { p: { vendor: "vllm", thinking: "adaptive" } } },
      "providers.p.thinking",
    ],
    ["the same in a model", { models: { m: { thinking: "level" } } }, "models.m.thinking"],
    ["a depth without a name", { models: { m: { efforts: ["low", ""] } } }, "models.m.efforts[1]"],
    [
      "an ability that nobody knows",
      { models: { m: { supports: ["tools", "mind_reading"] } } },
      "models.m.supports[1]",
    ],
    [
      "a form of tool_choice",
      { providers: { p: { vendor: "vllm", tool_choice: "none" } } },
      "providers.p.tool_choice",
    ],
    [
      "a temperature beyond what a client may say",
      { models: { m: { max_temperature: 2.1 } } },
      "models.m.max_temperature",
    ],
    ["what cannot be left out", { models: { m: { omit: ["messages"] } } }, "models.m.omit[0]"],
    [
      "a new name that is empty",
      { models: { m: { rename: { seed: "" } } } },
      "models.m.rename.seed",
    ],
    ["extra fields that are a list", { models: { m: { extra: [] } } }, "models.m.extra"],
    ["a place for thinking", { models: { m: { echo: "thoughts" } } }, "models.m.echo"],
    ["no tokens at all", { models: { m: { max_output_tokens: 0 } } }, "models.m.max_output_tokens"],
    ["half a token", { models: { m: { max_output_tokens: 1.5 } } }, "models.m.max_output_tokens"],
    ...[
      "thinking_off",
      "ask_usage",
      "stream_only",
      "think_tags",
      "repeats_reasoning",
      "hidden_thinking_in_total",
    ].map((field): [string, object, string] => [
      `${field} that is no boolean`,
      { models: { m: { [field]: "yes" } } },
      `models.m.${field}`,
    ]),
    [
      "a trait that nobody knows",
      { providers: { p: { vendor: "vllm", top_k: 1 } } },
      "providers.p.top_k",
    ],
  ];
  for (const [what, over, path] of FAULTS) {
    it(`a fault: ${what}`, () => {
      const given = configFor("http://127.0.0.1:1", ["m"], over);
      assert.throws(
        () => checkConfig(given, {}),
        (error) => {
          assert.ok(error instanceof ValidationError, String(error));
          assert.equal(error.issues.length, 1);
          assert.ok(error.message.includes(path), error.message);
          return true;
        },
      );
    });
  }
});
