// Anthropic's Messages API: what goes out, whole bodies of it written down by hand from wire.md
// "Anthropic requests" and held to the provider's rules by the fake; how replies are read, whole and
// streamed; failures; thoughts that come back.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { formats } from "../../../support/config.ts";
import { ApiError } from "../../../../src/core/openai/errors.ts";
import type { Dialect } from "../../../../src/core/providers/dialect.ts";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import {
  createSignatureStore,
  hashedId,
} from "../../../../src/extensions/providers/turns/index.ts";
import { costOf, PRICE, priced, settled } from "../../../support/books.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { merge, user } from "../../../support/gateway.ts";
import { event } from "../../../support/provider.ts";
import { within } from "../../../support/wait.ts";
import { askedBy, errorOf, replyTo, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };

describe("what goes out", () => {
  /**
   * By what they know: a budget, adaptive thinking, no thinking at all; then those that want less
   * to be said.
   */
  const MODELS = {
    old: {
      upstream_model: "claude-4-5-m",
      reasoning: true,
      thinking: "budget",
      max_output_tokens: 64_000,
    },
    new: { upstream_model: "claude-5-m", reasoning: true },
    plain: { upstream_model: "claude-4-5-m" },
    mute: { upstream_model: "claude-5-m", omit: ["temperature", "top_p"] },
    stubborn: { upstream_model: "claude-5-m", reasoning: true, thinking_off: false },
    unswitched: { upstream_model: "claude-4-5-m", reasoning: true, thinking: "none" },
  };

  /** What the provider is asked, which must break none of its rules. */
  function ask(fields: Json): Json {
    const { model = "plain", ...rest } = fields;
    const target = targetOf({ vendor: "anthropic" }, MODELS[model as keyof typeof MODELS]);
    const asked = askedBy(createAnthropicDialect(createSignatureStore()), rest, target);
    anthropic.understand(asked);
    return asked.body;
  }

  const text = (said: string) => ({ type: "text", text: said });
  const u = (...content: object[]) => ({ role: "user", content });
  const a = (...content: object[]) => ({ role: "assistant", content });
  const use = (id: string, input: Json = {}, name = "f") => ({ type: "tool_use", id, name, input });
  const answer = (tool_use_id: string, content: string) => ({
    type: "tool_result",
    tool_use_id,
    content,
  });
  const OPENING = u(text("(The conversation begins.)"));
  const F = { name: "f", input_schema: { type: "object" } };
  const HI = { model: "claude-4-5-m", max_tokens: 8_192, messages: [u(text("hi"))] };

  it("where to, and with which headers", () => {
    const target = targetOf({ vendor: "anthropic" }, MODELS.plain);
    const dialect = createAnthropicDialect(createSignatureStore());
    assert.deepEqual(askedBy(dialect, { stream: true }, target), {
      path: "/v1/messages",
      headers: { "x-api-key": PROVIDER_KEY, "anthropic-version": "2023-06-01" },
      body: { ...HI, stream: true },
    });
  });

  const said = (role: string, content: unknown) => ({ role, content });
  const called = (...ids: string[]) => ({
    role: "assistant",
    content: null,
    tool_calls: ids.map((id) => call(id)),
  });
  const call = (id: string, args = "{}", name = "f") => ({
    id,
    type: "function",
    function: { name, arguments: args },
  });
  const result = (tool_call_id: string, content: unknown) => ({
    role: "tool",
    tool_call_id,
    content,
  });
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  const file = (file_data: string) => ({ type: "file", file: { filename: "a", file_data } });
  const base64 = (words: string): string => Buffer.from(words).toString("base64");
  const CONVERSATIONS: [name: string, messages: Json[], out: Json[], system?: string][] = [
    [
      "system texts, wherever they stood",
      [
        said("system", "A"),
        said("user", "hi"),
        said("developer", [text("B"), text("C")]),
        said("assistant", "yes"),
        said("system", " \n"),
        said("user", "so"),
      ],
      [u(text("hi")), a(text("yes")), u(text("so"))],
      "A\n\nBC",
    ],
    [
      "no user at the beginning",
      [said("assistant", "Welcome."), said("user", "hi")],
      [OPENING, a(text("Welcome.")), u(text("hi"))],
    ],
    [
      "empty texts",
      [
        said("user", [text(" "), image("data:image/png;base64,AA=="), text("")]),
        said("assistant", "\n"),
        said("user", "hi"),
        { ...called("c"), content: "" },
        result("c", ""),
      ],
      [
        u(
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AA==" } },
          text("hi"),
        ),
        a(use("c")),
        u(answer("c", "")),
      ],
    ],
    [
      "images and files among texts",
      [
        said("user", [
          text("x"),
          image("data:image/jpeg;base64,/9j/"),
          image("https://pictures.invalid/a.png"),
          text("y"),
          {
            type: "file",
            file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBE" },
          },
        ]),
      ],
      [
        u(
          text("x"),
          { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "/9j/" } },
          { type: "image", source: { type: "url", url: "https://pictures.invalid/a.png" } },
          text("y"),
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
          },
        ),
      ],
    ],
    [
      "files of plain text",
      [
        said("user", [
          file(`data:Text/Plain;charset=utf-8;base64,${base64("\u{feff}Gr\u00fc\u00dfe\n")}`),
          file("data:Application/PDF;base64,JVBE"),
        ]),
      ],
      [
        u(
          {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "Gr\u00fc\u00dfe\n" },
          },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: "JVBE" },
          },
        ),
      ],
    ],
    [
      "the end of what the assistant has begun",
      [
        said("user", "hi"),
        said("assistant", "Well, \n"),
        said("user", "go on"),
        said("assistant", "a \n"),
        said("assistant", "b \n"),
      ],
      [u(text("hi")), a(text("Well, \n")), u(text("go on")), a(text("a \n"), text("b"))],
    ],
    [
      "results beside their calls, before any text",
      [
        said("user", "hi"),
        { ...called("x", "y"), content: "I look." },
        result("x", "1"),
        result("y", [text("2"), text("3")]),
        said("user", "well?"),
      ],
      [
        u(text("hi")),
        a(text("I look."), use("x"), use("y")),
        u(answer("x", "1"), answer("y", "23"), text("well?")),
      ],
    ],
    [
      "results out of order and late",
      [
        said("user", "hi"),
        called("x", "y"),
        result("y", "2"),
        said("user", "wait"),
        said("assistant", "Yes."),
        result("x", "1"),
        said("user", "well?"),
      ],
      [
        u(text("hi")),
        a(use("x"), use("y")),
        u(answer("x", "1"), answer("y", "2"), text("wait")),
        a(text("Yes.")),
        u(text("well?")),
      ],
    ],
    [
      "ids that begin anew in each turn",
      [
        said("user", "hi"),
        called("0", "1"),
        result("0", "a"),
        result("1", "b"),
        called("0"),
        result("0", "c"),
      ],
      [
        u(text("hi")),
        a(use("0"), use("1")),
        u(answer("0", "a"), answer("1", "b")),
        a(use(hashedId("2 0"))),
        u(answer(hashedId("2 0"), "c")),
      ],
    ],
    [
      "an id that comes again after a call that nobody answered",
      [said("user", "hi"), called("0"), said("user", "again"), called("0"), result("0", "new")],
      [
        u(text("hi")),
        a(use("0")),
        u(answer("0", ""), text("again")),
        a(use(hashedId("1 0"))),
        u(answer(hashedId("1 0"), "new")),
      ],
    ],
    [
      "a call that is answered twice",
      [said("user", "hi"), called("0"), result("0", "a"), result("0", "b")],
      [u(text("hi")), a(use("0")), u(answer("0", "a\nb"))],
    ],
    [
      "two calls with one id, whose results come in their order, and one more for the last",
      [said("user", "hi"), called("0", "0"), ...["a", "b", "c"].map((it) => result("0", it))],
      [
        u(text("hi")),
        a(use("0"), use(hashedId("1 0"))),
        u(answer("0", "a"), answer(hashedId("1 0"), "b\nc")),
      ],
    ],
    [
      "arguments that are no object",
      [
        said("user", "hi"),
        {
          ...called(),
          tool_calls: ['{"a":[1]}', "", '{"a":', "[1]", "null", '"x"'].map((args, at) =>
            call(`c${at}`, args),
          ),
        },
      ],
      [
        u(text("hi")),
        a(
          use("c0", { a: [1] }),
          use("c1"),
          ...['{"a":', "[1]", "null", '"x"'].map((_raw, at) => use(`c${at + 2}`, { _raw })),
        ),
        u(...[0, 1, 2, 3, 4, 5].map((at) => answer(`c${at}`, ""))),
      ],
    ],
  ];
  for (const [name, messages, out, system] of CONVERSATIONS)
    it(name, () => {
      const calls = messages.some((message) => "tool_calls" in message);
      // Tools that were called must be declared, although nobody may call them now.
      assert.deepEqual(ask({ messages }), {
        ...HI,
        messages: out,
        ...(system && { system }),
        ...(calls && { tools: [F], tool_choice: { type: "none" } }),
      });
    });

  it("files of any other type are refused before Anthropic is asked", () => {
    for (const type of ["text/csv", "image/png", `a/${"b".repeat(1_000)}`]) {
      const messages = [said("user", [file(`data:${type};base64,QQ==`)])];
      assert.throws(
        () => ask({ messages }),
        (error) =>
          error instanceof ApiError &&
          error.code === "unsupported_value" &&
          error.message.includes(`text/plain, got ${type.slice(0, 60)}`) &&
          error.message.length < 200,
      );
    }
  });

  it("ids with characters that are refused there: others, the same in call and result", () => {
    const ids = ["functions.f:0", "functions.f:1", "ü", "ok_-1"];
    const { messages } = ask({
      messages: [...user("hi"), called(...ids), ...ids.map((id) => result(id, id))],
    });
    const sent: string[] = messages[1].content.map(({ id }: Json) => id);
    for (const id of sent) assert.match(id, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual([new Set(sent).size, sent[3]], [4, "ok_-1"]);
    assert.deepEqual(
      messages[2].content,
      ids.map((id, at) => answer(sent[at]!, id)),
    );
  });

  it("several tools that were called, and none that may be: each is declared once", () => {
    const messages = [
      ...user("hi"),
      { ...called(), tool_calls: [call("a"), call("b", "{}", "g"), call("c")] },
    ];
    const { tools, tool_choice } = ask({ messages });
    assert.deepEqual([tools, tool_choice], [[F, { ...F, name: "g" }], { type: "none" }]);
  });

  const PSEUDONYM = createHash("sha256").update("alice").digest("hex").slice(0, 32);
  const NUMBER = {
    type: "number",
    description: "How warm",
    minimum: -40,
    exclusiveMaximum: 60,
    multipleOf: 0.5,
  };
  const BOUNDED = {
    type: "object",
    required: ["warmth"],
    additionalProperties: true,
    properties: {
      warmth: NUMBER,
      minimum: { type: "string", minLength: 1, maxLength: 9, pattern: "^a" },
      days: {
        type: "array",
        minItems: 1,
        maxItems: 7,
        uniqueItems: true,
        items: { anyOf: [{ type: "object", properties: {} }, { $ref: "#/$defs/d" }] },
      },
    },
    $defs: { d: { type: "object", properties: { n: { type: "integer", maximum: 3 } } } },
  };
  const CLOSED = {
    type: "object",
    required: ["warmth"],
    additionalProperties: false,
    properties: {
      warmth: {
        type: "number",
        description: "How warm; minimum: -40; exclusiveMaximum: 60; multipleOf: 0.5",
      },
      minimum: { type: "string", description: "minLength: 1; maxLength: 9; pattern: ^a" },
      days: {
        type: "array",
        description: "minItems: 1; maxItems: 7; uniqueItems: true",
        items: {
          anyOf: [
            { type: "object", properties: {}, additionalProperties: false },
            { $ref: "#/$defs/d" },
          ],
        },
      },
    },
    $defs: {
      d: {
        type: "object",
        properties: { n: { type: "integer", description: "maximum: 3" } },
        additionalProperties: false,
      },
    },
  };
  const format = (schema: object) => ({ format: { type: "json_schema", schema } });
  const named = (type: string, schema?: object) => ({
    response_format: {
      type,
      ...(type === "json_schema" && {
        json_schema: { name: "x", strict: true, ...(schema && { schema }) },
      }),
    },
  });
  const JSON_ONLY =
    "Answer with one JSON object and nothing else: no prose around it, no code fence.";
  const fn = (more: object) => ({ type: "function", function: { name: "f", ...more } });
  const TOOLS = [
    fn({ description: "Does.", parameters: BOUNDED, strict: false }),
    fn({ name: "g" }),
  ];
  const SENT = [
    { name: "f", description: "Does.", input_schema: BOUNDED },
    { name: "g", input_schema: { type: "object" } },
  ];
  const choose = (tool_choice: unknown, more: Json = {}) => ({
    tools: TOOLS,
    tool_choice,
    ...more,
  });
  const G = { type: "function", function: { name: "g" } };
  const alone = { parallel_tool_calls: false };
  const OFF = { thinking: { type: "disabled" } };
  const ADAPTIVE = { thinking: { type: "adaptive", display: "summarized" } };
  const NEW = { model: "claude-5-m" };
  const effort = (depth: string) => ({ output_config: { effort: depth } });
  const budget = (max_tokens: number, budget_tokens: number) => ({
    max_tokens,
    thinking: { type: "enabled", budget_tokens },
  });

  /**
   * What is said beside "hi", and what goes out beside HI; the model is "plain" unless it says
   * otherwise.
   */
  const FIELDS: [fields: Json, out: Json][] = [
    [{ max_tokens: 100 }, { max_tokens: 100 }],
    [{ max_completion_tokens: 90, max_tokens: 100 }, { max_tokens: 90 }],
    [{ max_tokens: 32_000 }, { max_tokens: 32_000 }],
    [{ model: "old" }, { max_tokens: 64_000, ...OFF }],
    [
      { model: "old", max_tokens: 64_001 },
      { max_tokens: 64_000, ...OFF },
    ],
    [{ temperature: 0.3 }, { temperature: 0.3 }],
    [{ temperature: 0, top_p: 0.5 }, { temperature: 0 }],
    [{ temperature: 1.5 }, { temperature: 1 }],
    [{ top_p: 0.5 }, { top_p: 0.5 }],
    [{ temperature: 0.3, top_p: 0.5 }, { temperature: 0.3 }],
    [{ model: "mute", temperature: 0.3, top_p: 0.5 }, NEW],
    [
      { model: "old", ...ON, temperature: 0.3, top_p: 0.5, max_tokens: 4_000 },
      budget(4_000, 2_000),
    ],
    [
      { model: "old", temperature: 0.3, top_p: 0.5, max_tokens: 9 },
      { temperature: 0.3, max_tokens: 9, ...OFF },
    ],
    [{ stop: "END" }, { stop_sequences: ["END"] }],
    [{ stop: ["END", "\n", " ", " x"] }, { stop_sequences: ["END", " x"] }],
    [{ user: "alice" }, { metadata: { user_id: PSEUDONYM } }],
    [
      {
        seed: 7,
        n: 1,
        metadata: { a: "b" },
        store: true,
        logit_bias: { 1: 1 },
        service_tier: "flex",
        top_k: 1,
        ...alone,
      },
      {},
    ],
    [
      {
        frequency_penalty: 0,
        presence_penalty: 0,
        logprobs: false,
        top_logprobs: 2,
        stop: [],
        tools: [],
      },
      {},
    ],

    [{ tools: TOOLS }, { tools: SENT, tool_choice: { type: "none" } }],
    [choose("none", alone), { tools: SENT, tool_choice: { type: "none" } }],
    [choose("auto"), { tools: SENT, tool_choice: { type: "auto" } }],
    [choose("required"), { tools: SENT, tool_choice: { type: "any" } }],
    [choose(G), { tools: SENT, tool_choice: { type: "tool", name: "g" } }],
    [
      choose("auto", alone),
      { tools: SENT, tool_choice: { type: "auto", disable_parallel_tool_use: true } },
    ],
    [
      choose("required", alone),
      { tools: SENT, tool_choice: { type: "any", disable_parallel_tool_use: true } },
    ],
    [
      choose(G, alone),
      { tools: SENT, tool_choice: { type: "tool", name: "g", disable_parallel_tool_use: true } },
    ],
    [choose("auto", { parallel_tool_calls: true }), { tools: SENT, tool_choice: { type: "auto" } }],
    [
      choose("required", { model: "new", ...ON }),
      { ...NEW, ...ADAPTIVE, tools: SENT, tool_choice: { type: "auto" } },
    ],
    [
      choose("none", { model: "new", ...ON }),
      { ...NEW, ...ADAPTIVE, tools: SENT, tool_choice: { type: "none" } },
    ],
    [
      choose(G, { model: "new", ...ON, ...alone }),
      {
        ...NEW,
        ...ADAPTIVE,
        tools: SENT,
        tool_choice: { type: "auto", disable_parallel_tool_use: true },
      },
    ],
    [
      { tools: [fn({ parameters: BOUNDED, strict: true })], tool_choice: "auto" },
      { tools: [{ name: "f", input_schema: CLOSED, strict: true }], tool_choice: { type: "auto" } },
    ],

    [{ model: "new" }, { ...NEW, ...OFF }],
    [
      { model: "new", ...ON },
      { ...NEW, ...ADAPTIVE },
    ],
    [
      { model: "new", thinking: { type: "disabled" }, reasoning_effort: "high" },
      { ...NEW, ...OFF },
    ],
    [
      { model: "new", reasoning_effort: "high", temperature: 0.3 },
      { ...NEW, ...ADAPTIVE, ...effort("high") },
    ],
    [
      { model: "new", reasoning_effort: "none" },
      { ...NEW, ...OFF },
    ],
    [{ model: "old", reasoning_effort: "medium" }, budget(64_000, 32_000)],
    ...[
      ["minimal", "low"],
      ["low", "low"],
      ["medium", "medium"],
      ["high", "high"],
      ["xhigh", "xhigh"],
      ["max", "max"],
    ].map(([given, depth]): [Json, Json] => [
      { model: "new", ...ON, reasoning_effort: given },
      { ...NEW, ...ADAPTIVE, ...effort(depth!) },
    ]),
    [{ model: "stubborn" }, NEW],
    [
      { model: "stubborn", ...ON, reasoning_effort: "low" },
      { ...NEW, ...ADAPTIVE, ...effort("low") },
    ],
    [
      { model: "unswitched", ...ON, reasoning_effort: "low", temperature: 0.3 },
      { temperature: 0.3 },
    ],
    [{ ...ON, reasoning_effort: "low", temperature: 0.3 }, { temperature: 0.3 }],
    [
      { model: "old", max_tokens: 10 },
      { max_tokens: 10, ...OFF },
    ],
    [{ model: "old", ...ON }, budget(64_000, 32_000)],
    ...(
      [
        ["minimal", 2_000],
        ["low", 2_000],
        ["medium", 5_000],
        ["high", 8_000],
        ["xhigh", 9_000],
        ["max", 9_500],
      ] as const
    ).map(([depth, tokens]): [Json, Json] => [
      { model: "old", ...ON, max_tokens: 10_000, reasoning_effort: depth },
      budget(10_000, tokens),
    ]),
    [{ model: "old", ...ON, max_tokens: 2_047, reasoning_effort: "low" }, budget(2_047, 1_024)],
    [{ model: "old", ...ON, max_tokens: 100, reasoning_effort: "max" }, budget(1_124, 1_024)],
    [{ model: "old", ...ON, max_tokens: 1_025 }, budget(1_025, 1_024)],
    // No room for a budget: the client's tokens stay for the answer.
    [{ model: "old", ...ON, max_tokens: 1_024 }, budget(2_048, 1_024)],
    [{ model: "old", ...ON, max_tokens: 1 }, budget(1_025, 1_024)],

    [named("json_object"), { system: JSON_ONLY }],
    [named("json_schema"), { system: JSON_ONLY }],
    [named("json_schema", BOUNDED), { output_config: format(CLOSED) }],
    [
      { model: "new", ...ON, reasoning_effort: "low", ...named("json_schema", { type: "object" }) },
      {
        ...NEW,
        ...ADAPTIVE,
        output_config: {
          effort: "low",
          ...format({ type: "object", additionalProperties: false }),
        },
      },
    ],
    [named("text"), {}],
  ];
  for (const [fields, out] of FIELDS)
    it(JSON.stringify(fields).slice(0, 100), () =>
      assert.deepEqual(ask(fields), { ...HI, ...out }),
    );

  it("json_object after system texts; nothing but blank stops", () => {
    const messages = [said("system", "S"), said("user", "hi")];
    const { system } = ask({ messages, ...named("json_object") });
    assert.equal(system, `S\n\n${JSON_ONLY}`);
    assert.deepEqual(ask({ stop: [" ", "\n"] })["stop_sequences"] ?? [], []);
  });
});

const USAGE = {
  input_tokens: 10,
  cache_creation_input_tokens: 2,
  cache_read_input_tokens: 8,
  output_tokens: 7,
};
/** A whole reply. */
const message = (
  content: readonly object[],
  stop_reason: string | null = "end_turn",
  usage: object = USAGE,
) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-2026",
  content,
  stop_reason,
  stop_sequence: null,
  usage,
});
const start = (
  content: readonly object[] = [],
  usage: object = { ...USAGE, output_tokens: 1 },
) => ({ type: "message_start", message: message(content, null, usage) });
/** A block of a stream, from its beginning to its end. */
const block = (index: number, content_block: object, ...deltas: readonly object[]) => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index },
];
const ended = (stop_reason: string | null = "end_turn", usage: object = { output_tokens: 7 }) => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null },
  usage,
});
const STOP = { type: "message_stop" };
const PING = { type: "ping" };
const textBlock = (text: string) => ({ type: "text", text });
const thought = (thinking: string, signature: string) => ({
  type: "thinking",
  thinking,
  signature,
});
const REDACTED = { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" };
const toolUse = (id: string, name: string, input: Json | string) => ({
  type: "tool_use",
  id,
  name,
  input,
});
const say = (text: string) => ({ type: "text_delta", text });
const think = (thinking: string) => ({ type: "thinking_delta", thinking });
const sign = (signature: string) => ({ type: "signature_delta", signature });
const input = (partial_json: string) => ({ type: "input_json_delta", partial_json });

const DECODED = targetOf({ dialect: "anthropic" }, { reasoning: true });
const answers = (reply: object, events: readonly object[]) =>
  replyTo(() => createAnthropicDialect(createSignatureStore()), reply, events, DECODED);

describe("replies, whole and streamed", () => {
  const said = (
    text: string | null,
    reasoning: string,
    ...calls: [id: string, name: string, args: string][]
  ) => ({ text: text ?? "", reasoning, calls });
  const CASES: [
    name: string,
    content: object[],
    events: object[],
    expected: object,
    stop?: string,
  ][] = [
    [
      "text",
      [textBlock("Hello.")],
      [start(), ...block(0, textBlock(""), say("Hel"), say("lo."))],
      said("Hello.", ""),
    ],
    [
      "several texts",
      [
        textBlock("One, "),
        { ...textBlock("two."), citations: [{ type: "char_location", cited_text: "x" }] },
      ],
      [
        start(),
        ...block(0, textBlock(""), say("One, ")),
        ...block(1, textBlock("t"), { type: "citations_delta", citation: {} }, say("wo.")),
      ],
      said("One, two.", ""),
    ],
    ["nothing", [], [start()], said("", "")],
    [
      "thinking that is not shown",
      [thought("", "c2ln"), textBlock("Hi.")],
      [start(), ...block(0, thought("", ""), sign("c2ln")), ...block(1, textBlock(""), say("Hi."))],
      said("Hi.", ""),
    ],
    [
      "tools without input",
      [toolUse("toolu_1", "f", {}), toolUse("toolu_2", "g", {})],
      [
        start(),
        ...block(0, toolUse("toolu_1", "f", {}), input("")),
        ...block(1, toolUse("toolu_2", "g", {})),
      ],
      said(null, "", ["toolu_1", "f", "{}"], ["toolu_2", "g", "{}"]),
      "tool_use",
    ],
    [
      "input in the block's beginning",
      [toolUse("toolu_1", "f", { a: 1 })],
      [start(), ...block(0, toolUse("toolu_1", "f", { a: 1 }))],
      said(null, "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
    [
      "a call that begins with all of its arguments, which deltas repeat",
      [toolUse("toolu_1", "f", { a: 1 })],
      [start(), ...block(0, toolUse("toolu_1", "f", { a: 1 }), input('{"a"'), input(":1}"))],
      said(null, "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
    [
      "arguments as a string in the whole reply",
      [toolUse("toolu_1", "f", '{"a":1}')],
      [start(), ...block(0, toolUse("toolu_1", "f", {}), input('{"a":1}'))],
      said(null, "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
    [
      "thinking",
      [thought("Let me.", "c2ln"), textBlock("Ø.")],
      [
        start(),
        ...block(0, thought("", ""), think("Let "), think("me."), sign("c2ln")),
        ...block(1, textBlock(""), say("Ø.")),
      ],
      said("Ø.", "Let me."),
    ],
    [
      "redacted thinking",
      [REDACTED, thought("a", "x"), REDACTED, thought("b", "y"), textBlock("Hi.")],
      [
        start(),
        ...block(0, REDACTED),
        ...block(1, thought("a", ""), sign("x")),
        ...block(2, REDACTED),
        ...block(3, thought("", ""), think("b"), sign("y")),
        ...block(4, textBlock(""), say("Hi.")),
      ],
      said("Hi.", "ab"),
    ],
    [
      "parallel tools after text",
      [
        textBlock("I look."),
        toolUse("toolu_1", "f", { a: [1, "ü"] }),
        toolUse("toolu_2", "g", { b: {} }),
      ],
      [
        start(),
        ...block(0, textBlock(""), say("I look.")),
        ...block(1, toolUse("toolu_1", "f", {}), input(""), input('{"a":[1'), input(',"ü"]}')),
        ...block(2, toolUse("toolu_2", "g", {}), input('{"b":{}}')),
      ],
      said("I look.", "", ["toolu_1", "f", '{"a":[1,"ü"]}'], ["toolu_2", "g", '{"b":{}}']),
      "tool_use",
    ],
    [
      "content in the message's beginning",
      [
        toolUse("toolu_1", "f", { a: 1 }),
        thought("Hm.", "s"),
        textBlock("So: "),
        toolUse("toolu_2", "g", { b: 2 }),
        toolUse("toolu_3", "g", {}),
      ],
      [
        start([toolUse("toolu_1", "f", { a: 1 }), thought("Hm.", "s"), textBlock("So: ")]),
        ...block(0, toolUse("toolu_2", "g", {}), input('{"b":2}')),
        ...block(1, toolUse("toolu_3", "g", {})),
      ],
      said(
        "So: ",
        "Hm.",
        ["toolu_1", "f", '{"a":1}'],
        ["toolu_2", "g", '{"b":2}'],
        ["toolu_3", "g", "{}"],
      ),
      "tool_use",
    ],
    [
      "the provider's own tools, pings, and unknown events and deltas are left out",
      [
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
        { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] },
        textBlock("Hi."),
        toolUse("toolu_1", "f", { a: 1 }),
      ],
      [
        start(),
        PING,
        ...block(
          0,
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
          input('{"query":"x"}'),
        ),
        ...block(1, { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }),
        PING,
        ...block(2, textBlock(""), say("H"), { type: "news_delta", text: "no" }, say("i.")),
        { type: "news", text: "no", delta: { type: "text_delta", text: "no" } },
        ...block(3, toolUse("toolu_1", "f", {}), input('{"a":1}')),
      ],
      said("Hi.", "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
    [
      "a block that nobody knows is text",
      [textBlock("Hi."), { type: "news", at: 1 }, toolUse("toolu_1", "f", { a: 1 })],
      [
        start(),
        ...block(0, textBlock(""), say("Hi.")),
        ...block(1, { type: "news", at: 1 }),
        ...block(2, toolUse("toolu_1", "f", {}), input('{"a":1}')),
      ],
      said('Hi.{"type":"news","at":1}', "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
    [
      "a whole message at the end of a stream, which repeats it",
      [textBlock("Hi."), toolUse("toolu_1", "f", { a: 1 })],
      [
        start(),
        ...block(0, textBlock(""), say("Hi.")),
        ...block(1, toolUse("toolu_1", "f", {}), input('{"a":1}')),
        message([textBlock("Hi."), toolUse("toolu_1", "f", { a: 1 })], "tool_use"),
      ],
      said("Hi.", "", ["toolu_1", "f", '{"a":1}']),
      "tool_use",
    ],
  ];
  for (const [name, content, events, expected, stop] of CASES)
    it(name, () => {
      const { text, reasoning, calls, finish } = answers(message(content, stop), [
        ...events,
        ended(stop),
        STOP,
      ]);
      assert.deepEqual({ text, reasoning, calls }, expected);
      assert.equal(finish, stop ? "tool_calls" : "stop");
    });

  const counts = (prompt: number, hit: number, completion: number, reasoning: number) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_cache_hit_tokens: hit,
    prompt_cache_miss_tokens: prompt - hit,
    prompt_tokens_details: { cached_tokens: hit },
    completion_tokens_details: { reasoning_tokens: reasoning },
  });
  /** The same, of which something was written to the cache. */
  const writing = (writes: object, usage: ReturnType<typeof counts>): object =>
    merge(usage, { prompt_tokens_details: writes }) as object;
  const WRITTEN = { cache_write_tokens: 2 };
  const NULLS = {
    input_tokens: null,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    output_tokens_details: null,
  };
  // Of a stream: what its beginning says, then what its end says.
  const COUNTS: [name: string, whole: Json, first: Json, last: Json, expected: object][] = [
    [
      "no cache",
      { input_tokens: 10, output_tokens: 7 },
      { input_tokens: 10, output_tokens: 1 },
      { output_tokens: 7 },
      counts(10, 0, 7, 0),
    ],
    [
      "a cache stands beside the input",
      USAGE,
      { ...USAGE, output_tokens: 1 },
      { output_tokens: 7 },
      writing(WRITTEN, counts(20, 8, 7, 0)),
    ],
    [
      "nulls are no figures",
      { ...USAGE, output_tokens_details: null },
      { ...USAGE, output_tokens: 1 },
      { ...NULLS, output_tokens: 7 },
      writing(WRITTEN, counts(20, 8, 7, 0)),
    ],
    [
      "thinking is a part of the output",
      { ...USAGE, output_tokens_details: { thinking_tokens: 3 } },
      { ...USAGE, output_tokens: 1 },
      { output_tokens: 7, output_tokens_details: { thinking_tokens: 3 } },
      writing(WRITTEN, counts(20, 8, 7, 3)),
    ],
    [
      "a later figure takes the place of an earlier",
      { ...USAGE, input_tokens: 90 },
      USAGE,
      { input_tokens: 90, cache_read_input_tokens: 8, output_tokens: 7 },
      writing(WRITTEN, counts(100, 8, 7, 0)),
    ],
    ["all of it at the end", USAGE, {}, USAGE, writing(WRITTEN, counts(20, 8, 7, 0))],
    [
      "beside what is not counted",
      {
        ...USAGE,
        service_tier: "standard",
        cache_creation: { ephemeral_5m_input_tokens: 2 },
        server_tool_use: { web_search_requests: 1 },
      },
      USAGE,
      { output_tokens: 7, server_tool_use: { web_search_requests: 1 } },
      writing(WRITTEN, counts(20, 8, 7, 0)),
    ],
    [
      "an hour's share that is more than all that was written",
      { ...USAGE, cache_creation: { ephemeral_1h_input_tokens: 90 } },
      { ...USAGE, output_tokens: 1 },
      { output_tokens: 7, cache_creation: { ephemeral_1h_input_tokens: 90 } },
      writing({ cache_write_tokens: 2, cache_write_1h_tokens: 2 }, counts(20, 8, 7, 0)),
    ],
    [
      "written for an hour and for five minutes",
      {
        ...USAGE,
        cache_creation_input_tokens: 9,
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 6 },
      },
      {
        ...USAGE,
        cache_creation_input_tokens: 9,
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 6 },
      },
      { output_tokens: 7, cache_creation: null },
      writing({ cache_write_tokens: 9, cache_write_1h_tokens: 6 }, counts(27, 8, 7, 0)),
    ],
    [
      "written, of which only the parts are stated",
      {
        input_tokens: 10,
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 6 },
        output_tokens: 7,
      },
      { input_tokens: 10, output_tokens: 1 },
      {
        cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 6 },
        output_tokens: 7,
      },
      writing({ cache_write_tokens: 9, cache_write_1h_tokens: 6 }, counts(19, 0, 7, 0)),
    ],
    [
      "of the reply alone: the prompt is estimated",
      { output_tokens: 7 },
      { output_tokens: 1 },
      { output_tokens: 7 },
      counts(1, 0, 7, 0),
    ],
  ];
  for (const [name, usage, first, last, expected] of COUNTS)
    it(`usage: ${name}`, () => {
      const reply = answers(message([textBlock("Hi.")], "end_turn", usage), [
        start([], first),
        ...block(0, textBlock(""), say("Hi.")),
        ended("end_turn", last),
        STOP,
      ]);
      assert.deepEqual(reply.usage, expected);
    });

  it("usage: several ends, of which the last counts", () => {
    const events = [
      start(),
      ...block(0, textBlock(""), say("Hi.")),
      ended(null, { output_tokens: 3 }),
      ended("max_tokens", { output_tokens: 7 }),
      STOP,
    ];
    assert.deepEqual(answers(message([textBlock("Hi.")], "max_tokens"), events), {
      ...said("Hi.", ""),
      finish: "length",
      usage: writing(WRITTEN, counts(20, 8, 7, 0)),
    });
  });
});

describe("failures", () => {
  for (const [httpStatus, type, code, words] of [
    [400, "invalid_request_error", "upstream_rejected"],
    [400, "invalid_request_error", "context_length_exceeded", "prompt is too long: 9 tokens"],
    [401, "authentication_error", "model_unavailable"],
    [402, "billing_error", "model_unavailable"],
    [403, "permission_error", "model_unavailable"],
    [404, "not_found_error", "model_unavailable"],
    [413, "request_too_large", "upstream_rejected"],
    [429, "rate_limit_error", "model_overloaded"],
    [500, "api_error", "upstream_error"],
    [504, "timeout_error", "upstream_error"],
    [529, "overloaded_error", "model_overloaded"],
  ] as const)
    it(`${type} is ${code}, as a status and as an event`, () => {
      const dialect = createAnthropicDialect(createSignatureStore());
      const error = { type: "error", error: { type, message: words ?? "no" } };
      assert.equal(dialect.refusal(httpStatus, { get: () => null }, error).code, code);
      assert.equal(errorOf(() => dialect.decoder(DECODED).push(error)).code, code);
    });

  it("another type of object is no reply", () => {
    const other = { type: "completion", completion: "Hi." };
    assert.equal(errorOf(() => answers(other, [])).code, "upstream_error");
  });

  it("a client that leaves after the first delta pays for the prompt that message_start counted", async (t) => {
    const half = [...block(0, textBlock(""), say("Hel"))].slice(0, -1);
    const { dir, gw } = await priced(
      t,
      {
        m: ({ res }) => {
          res.writeHead(200, { "content-type": "text/event-stream" });
          res.write([start(), ...half].map(event).join(""));
        },
      },
      { providers: { lab: { dialect: "anthropic", thinking: "adaptive" } } },
    );
    const reader = (
      await gw.chat({ model: "m", stream: true, messages: user("hi") })
    ).body!.getReader();
    for (let text = ""; !text.includes("Hel"); )
      text += new TextDecoder().decode((await within(reader.read(), "the first delta")).value);
    await reader.cancel();
    const [settle] = await settled(dir);
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 1,
      total_tokens: 21,
      prompt_cache_hit_tokens: 8,
      prompt_cache_miss_tokens: 12,
      reasoning_tokens: 0,
      cache_write_tokens: 2,
    };
    assert.deepEqual(
      [settle!["status"], settle!["usage"], settle!["usage_source"], settle!["cost"]],
      ["cancelled", usage, "estimated", costOf(usage, PRICE)],
    );
  });
});

describe("thoughts that come back", () => {
  const CALLED = [
    thought("The weather, ", "c2lnMQ=="),
    REDACTED,
    thought("then.", "c2lnMg=="),
    textBlock("I look."),
    toolUse("toolu_1", "f", { a: 1 }),
    toolUse("toolu_2", "f", {}),
  ];
  const STREAMED = [
    start(),
    ...block(0, thought("", ""), think("The "), think("weather, "), sign("c2ln"), sign("MQ==")),
    ...block(1, REDACTED),
    ...block(2, thought("", ""), think("then."), sign("c2lnMg==")),
    ...block(3, textBlock(""), say("I look.")),
    ...block(4, toolUse("toolu_1", "f", {}), input('{"a":'), input("1}")),
    ...block(5, toolUse("toolu_2", "f", {}), input("")),
    ended("tool_use"),
    STOP,
  ];
  const REQUEST = { ...ON, tools: [{ type: "function", function: { name: "f" } }] };
  const ADAPTIVE = { type: "adaptive", display: "summarized" };
  /** What is asked when the client has answered these calls; it does not send thoughts back. */
  function askedAfter(dialect: Dialect, ids: readonly string[], later: readonly Json[] = []) {
    const tool_calls = ids.map((id) => ({
      id,
      type: "function",
      function: { name: "f", arguments: id === "toolu_1" ? '{"a":1}' : "{}" },
    }));
    const messages = [
      ...user("hi"),
      { role: "assistant", content: "I look.", tool_calls },
      ...ids.map((tool_call_id) => ({ role: "tool", tool_call_id, content: "1" })),
      ...later,
    ];
    const { thinking, messages: sent } = askedBy(dialect, { ...REQUEST, messages }, DECODED).body;
    return { thinking, content: sent[1].content };
  }
  const BOTH = ["toolu_1", "toolu_2"];

  for (const [name, events] of [
    ["whole", [message(CALLED, "tool_use")]],
    ["streamed", STREAMED],
  ] as const)
    it(`as they came, redacted ones too, ${name}, and in the turns before too`, () => {
      const dialect = createAnthropicDialect(createSignatureStore());
      const { push } = dialect.decoder(DECODED);
      for (const event of events) push(event);
      const later = [{ role: "assistant", content: "Fine." }, ...user("and?")];
      for (const more of [[], later])
        assert.deepEqual(askedAfter(dialect, BOTH, more), { thinking: ADAPTIVE, content: CALLED });
    });

  it("before the calls that they came before, but the first at the beginning", () => {
    const dialect = createAnthropicDialect(createSignatureStore());
    const [first, second] = [thought("First.", "c2lnMQ=="), thought("Then.", "c2lnMg==")];
    const uses = [toolUse("toolu_1", "f", { a: 1 }), toolUse("toolu_2", "f", {})];
    const content = [textBlock("I look."), first, uses[0]!, second, uses[1]!];
    dialect.decoder(DECODED).push(message(content, "tool_use"));
    assert.deepEqual(askedAfter(dialect, BOTH).content, [
      first,
      textBlock("I look."),
      uses[0],
      second,
      uses[1],
    ]);
  });

  it("to the provider and the account that have them, also after a reload, and to no other", () => {
    const scope = { baseUrl: "https://a.test", account: "one" };
    const inScope = (over: object) =>
      formats.dialects.get("anthropic")!.create({ ...scope, ...over });
    inScope({}).decoder(DECODED).push(message(CALLED, "tool_use"));
    assert.deepEqual(askedAfter(inScope({}), BOTH).content, CALLED);
    for (const other of [{ account: "two" }, { baseUrl: "https://b.test" }])
      assert.deepEqual(askedAfter(inScope(other), BOTH), {
        thinking: { type: "disabled" },
        content: CALLED.slice(3),
      });
  });

  it("the end of a message is the end of the stream, although the connection stays", () => {
    const { push, ended } = createAnthropicDialect(createSignatureStore()).decoder(DECODED);
    const over = [
      { type: "message_start", message: {} },
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
      { type: "ping" },
      { type: "message_stop" },
    ].map((event) => {
      push(event);
      return ended?.();
    });
    assert.deepEqual(over, [false, false, false, true]);
  });

  it("a whole message after its events passes to a client of this format as their end alone", () => {
    const { push } = createAnthropicDialect(createSignatureStore()).decoder(DECODED, {
      dialect: "anthropic",
      body: {},
      headers: {},
    });
    const repeated = message([textBlock("Hi.")], "end_turn");
    for (const event of [start(), ...block(0, textBlock(""), say("Hi."))]) push(event);
    const parts = push(repeated);
    assert.deepEqual(
      parts.filter(({ type }) => type !== "usage"),
      [
        { type: "native", event: ended("end_turn", repeated.usage), content: false },
        { type: "finish", reason: "stop" },
      ],
    );
  });
});
