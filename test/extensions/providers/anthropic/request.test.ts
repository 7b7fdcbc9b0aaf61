// What Anthropic's Messages API is asked: bodies written down by hand from wire.md "Anthropic
// requests", and held to the provider's rules by the fake.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { user } from "../../../support/gateway.ts";
import { askedBy, calling, callOf, resultOf, targetOf } from "../dialect-bench.ts";

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
    warm: { upstream_model: "claude-5-m", omit: ["temperature"] },
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

  const HI = {
    model: "claude-4-5-m",
    max_tokens: 8_192,
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  };

  it("where to, and with which headers", () => {
    const target = targetOf({ vendor: "anthropic" }, MODELS.plain);
    const dialect = createAnthropicDialect(createSignatureStore());
    assert.deepEqual(askedBy(dialect, { stream: true }, target), {
      path: "/v1/messages",
      headers: { "x-api-key": PROVIDER_KEY, "anthropic-version": "2023-06-01" },
      body: { ...HI, stream: true },
    });
  });

  const PSEUDONYM = createHash("sha256").update("alice").digest("hex").slice(0, 32);
  const BOUNDED = { type: "object", properties: { n: { type: "integer", minimum: 1 } } };
  const CLOSED = {
    type: "object",
    properties: { n: { type: "integer", description: "minimum: 1" } },
    additionalProperties: false,
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
    [{ max_completion_tokens: 90, max_tokens: 100 }, { max_tokens: 90 }],
    [{ model: "old" }, { max_tokens: 64_000, ...OFF }],
    [
      { model: "old", max_tokens: 64_001 },
      { max_tokens: 64_000, ...OFF },
    ],
    [{ temperature: 1.5 }, { temperature: 1 }],
    [{ top_p: 0.5 }, { top_p: 0.5 }],
    [{ temperature: 0.3, top_p: 0.5 }, { temperature: 0.3 }],
    [{ model: "mute", temperature: 0.3, top_p: 0.5 }, NEW],
    [
      { model: "warm", temperature: 0.3, top_p: 0.5 },
      { ...NEW, top_p: 0.5 },
    ],
    [{ model: "warm" }, NEW],
    [
      { model: "old", ...ON, temperature: 0.3, top_p: 0.5, max_tokens: 4_000 },
      budget(4_000, 2_000),
    ],
    [{ stop: "END" }, { stop_sequences: ["END"] }],
    [{ stop: ["END", "\n", " ", " x"] }, { stop_sequences: ["END", " x"] }],
    [{ user: "alice" }, { metadata: { user_id: PSEUDONYM } }],
    [{ seed: 7, metadata: { a: "b" }, logit_bias: { 1: 1 }, top_k: 1, ...alone }, {}],
    [{ frequency_penalty: 0, logprobs: false, top_logprobs: 2, stop: [], tools: [] }, {}],

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
      choose(G, alone),
      { tools: SENT, tool_choice: { type: "tool", name: "g", disable_parallel_tool_use: true } },
    ],
    [
      choose("required", { model: "new", ...ON }),
      { ...NEW, ...ADAPTIVE, tools: SENT, tool_choice: { type: "auto" } },
    ],
    [
      choose(G, { model: "new", ...ON }),
      { ...NEW, ...ADAPTIVE, tools: SENT, tool_choice: { type: "auto" } },
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

  it("a conversation: system texts first, media among the texts, calls that are declared", () => {
    const text = (said: string) => ({ type: "text", text: said });
    const image = (url: string) => ({ type: "image_url", image_url: { url } });
    const file = (file_data: string) => ({ type: "file", file: { filename: "a", file_data } });
    const source = (type: string, form: string, media_type: string, data: string) => ({
      type,
      source: { type: form, media_type, data },
    });
    const words = Buffer.from("\u{feff}Gr\u00fc\u00dfe\n").toString("base64");
    const content = [
      text("x"),
      image("data:image/jpeg;base64,/9j/"),
      image("https://pictures.invalid/a.png"),
      file(`data:Text/Plain;charset=utf-8;base64,${words}`),
      file("data:Application/PDF;base64,JVBE"),
    ];
    const messages = [
      { role: "system", content: "A" },
      { role: "user", content },
      { role: "developer", content: [text("B"), text("C")] },
      calling(callOf("c", "f", '{"a":1}')),
      resultOf("c", "2"),
    ];
    assert.deepEqual(ask({ messages }), {
      ...HI,
      system: "A\n\nBC",
      messages: [
        {
          role: "user",
          content: [
            text("x"),
            source("image", "base64", "image/jpeg", "/9j/"),
            { type: "image", source: { type: "url", url: "https://pictures.invalid/a.png" } },
            source("document", "text", "text/plain", "Gr\u00fc\u00dfe\n"),
            source("document", "base64", "application/pdf", "JVBE"),
          ],
        },
        {
          role: "assistant",
          content: [{ type: "tool_use", id: "c", name: "f", input: { a: 1 } }],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "2" }] },
      ],
      // Tools that were called must be declared, although nobody may call them now.
      tools: [{ name: "f", input_schema: { type: "object" } }],
      tool_choice: { type: "none" },
    });
  });

  it("json_object after system texts; nothing but blank stops", () => {
    const messages = [{ role: "system", content: "S" }, ...user("hi")];
    const { system } = ask({ messages, ...named("json_object") });
    assert.equal(system, `S\n\n${JSON_ONLY}`);
    assert.deepEqual(ask({ stop: [" ", "\n"] })["stop_sequences"] ?? [], []);
  });
});
