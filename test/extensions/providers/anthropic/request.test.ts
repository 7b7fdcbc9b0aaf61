// Requests to Anthropic's Messages API: bodies written by hand from wire.md "Anthropic requests",
// and checked against the provider's rules by the fake provider. Then JSON Schemas in its format.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { closedSchema } from "../../../../src/extensions/providers/schemas/index.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { anthropic } from "../../../support/fake-anthropic.ts";
import { PROVIDER_KEY } from "../../../support/fake-provider.ts";
import { user } from "../../../support/gateway.ts";
import { askedBy, calling, callOf, resultOf, targetOf } from "../dialect-bench.ts";

type Json = Record<string, any>;

const ON = { thinking: { type: "enabled" } };

describe("a request to Anthropic", () => {
  const LIMITED = { max_output_tokens: 64_000 };
  /**
   * Models with a thinking budget, adaptive thinking and no thinking; then with omitted parameters,
   * with thinking that cannot be switched, and with checks of what was before a thought.
   */
  const MODELS = {
    old: { upstream_model: "claude-4-5-m", reasoning: true, thinking: "budget", ...LIMITED },
    new: { upstream_model: "claude-5-m", reasoning: true },
    plain: { upstream_model: "claude-4-5-m" },
    lax: { upstream_model: "claude-4-5-m", supports: ["tools"] },
    mute: { upstream_model: "claude-5-m", omit: ["temperature", "top_p"] },
    warm: { upstream_model: "claude-5-m", omit: ["temperature"] },
    stubborn: { upstream_model: "claude-5-m", reasoning: true, thinking_off: false },
    unswitched: { upstream_model: "claude-4-5-m", reasoning: true, thinking: "none" },
    dated: { upstream_model: "claude-5-m/claude-opus-5-20260505", reasoning: true },
    checking: { upstream_model: "claude-5-m/claude-opus-5-5", reasoning: true },
    always: { upstream_model: "claude-5-m/claude-fable-5-2", reasoning: true, thinking_off: false },
    noting: { upstream_model: "claude-5-m/claude-sonnet-5-5", reasoning: true },
  };

  /** The provider's request, which must break none of its rules. */
  function ask(fields: Json, model: keyof typeof MODELS = "plain"): Json {
    const target = targetOf({ vendor: "anthropic" }, MODELS[model]);
    const asked = askedBy(createAnthropicDialect(createSignatureStore()), fields, target);
    anthropic.understand(asked);
    return asked.body;
  }

  const HI = {
    model: "claude-4-5-m",
    max_tokens: 8_192,
    messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
  };

  it("the address and the headers", () => {
    const target = targetOf({ vendor: "anthropic" }, MODELS.plain);
    const dialect = createAnthropicDialect(createSignatureStore());
    assert.deepEqual(askedBy(dialect, { stream: true }, target), {
      path: "/v1/messages",
      headers: { "x-api-key": PROVIDER_KEY, "anthropic-version": "2023-06-01" },
      body: { ...HI, stream: true },
    });
  });

  it("the beta without which a model does not drop changed thoughts, beside the operator's", () => {
    const dialect = createAnthropicDialect(createSignatureStore());
    const betasFor = (
      model: keyof typeof MODELS,
      headers = {},
      omit: string[] = [],
      chat: object = ON,
    ) =>
      askedBy(dialect, chat, targetOf({ vendor: "anthropic", headers, omit }, MODELS[model]))
        .headers?.["anthropic-beta"];
    const beta = "thinking-binding-controls-2026-08-01";
    assert.deepEqual(
      [betasFor("new"), betasFor("checking"), betasFor("checking", { "anthropic-beta": "a" })],
      [undefined, beta, `a,${beta}`],
    );
    assert.equal(betasFor("checking", {}, ["vendor_betas"]), undefined);
    const onCloud = (place: object) =>
      askedBy(dialect, ON, targetOf({ ...place, dialect: "anthropic" }, MODELS.checking));
    const clouds = [
      { vendor: "bedrock", region: "r" },
      { vendor: "vertex", project: "p", location: "global" },
    ].map(onCloud);
    for (const { headers, body } of clouds)
      assert.deepEqual(
        [headers?.["anthropic-beta"], body["thinking"]],
        [beta, { ...ADAPTIVE.thinking, ...DROPPING }],
      );
    // Servers between may refuse a beta that they do not know, so only where it is needed.
    assert.equal(betasFor("checking", {}, [], {}), undefined);
  });

  const PSEUDONYM = createHash("sha256").update("alice").digest("hex").slice(0, 32);
  const BOUNDED = { type: "object", properties: { n: { type: "integer", minimum: 1 } } };
  const CLOSED = {
    type: "object",
    properties: { n: { type: "integer", description: "minimum: 1" } },
    additionalProperties: false,
  };
  const ANY = { type: "object", additionalProperties: false };
  const [A, B] = [{ const: "a" }, { const: "b" }];
  const $defs = { B: { properties: { kind: B }, required: ["kind"] } };
  const REF = { $ref: "#/$defs/B" };
  const anyOf = [{ allOf: [REF, REF, { $ref: "#" }] }];
  const oneOf = [{ properties: { kind: A, a: {} } }, { anyOf }];
  const JOINED = { $defs, type: "object", properties: { kind: { anyOf: [A, B] }, a: {} } };
  const format = (schema: object) => ({ format: { type: "json_schema", schema } });
  const schema = (schema: object | undefined) => ({
    response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } },
  });
  const JSON_ONLY =
    "Answer with one JSON object and nothing else: no prose around it, no code fence.";
  const fn = (more: object) => ({ type: "function", function: { name: "f", ...more } });
  const TOOLS = [
    fn({ description: "Does.", parameters: BOUNDED, strict: false }),
    fn({ name: "g", parameters: { oneOf, $defs } }),
  ];
  const SENT = [
    { name: "f", description: "Does.", input_schema: BOUNDED },
    { name: "g", input_schema: JOINED },
  ];
  const choose = (tool_choice: unknown) => ({ tools: TOOLS, tool_choice });
  const chosen = (tool_choice: object) => ({ tools: SENT, tool_choice });
  const G = { type: "function", function: { name: "g" } };
  const alone = { parallel_tool_calls: false };
  const ALONE = { disable_parallel_tool_use: true };
  const WARM = { temperature: 0.3, top_p: 0.5 };
  const OFF = { thinking: { type: "disabled" } };
  const NOTES = { thinking: { type: "between_tools" } };
  const ADAPTIVE = { thinking: { type: "adaptive", display: "summarized" } };
  const DROPPING = { block_binding: { prefix_mismatch_behavior: "drop_block" } };
  const effort = (depth: string) => ({ output_config: { effort: depth } });
  const budget = (max_tokens: number, budget_tokens: number) => ({
    max_tokens,
    thinking: { type: "enabled", budget_tokens },
  });

  /** The model, the client's fields beside "hi", and the provider's fields beside HI. */
  const FIELDS: [model: keyof typeof MODELS, fields: Json, out: Json][] = [
    ["plain", { max_completion_tokens: 90, max_tokens: 100 }, { max_tokens: 90 }],
    ["old", {}, { max_tokens: 64_000, ...OFF }],
    ["old", { max_tokens: 64_001 }, { max_tokens: 64_000, ...OFF }],
    ["plain", { temperature: 1.5 }, { temperature: 1 }],
    ["plain", { top_p: 0.5 }, { top_p: 0.5 }],
    ["plain", WARM, { temperature: 0.3 }],
    ["mute", WARM, {}],
    ["warm", WARM, { top_p: 0.5 }],
    ["warm", {}, {}],
    ["old", { ...ON, ...WARM, max_tokens: 4_000 }, budget(4_000, 2_000)],
    ["plain", { stop: "END" }, { stop_sequences: ["END"] }],
    ["plain", { stop: ["END", "\n", " ", " x"] }, { stop_sequences: ["END", " x"] }],
    ["plain", { stop: [" ", "\n"] }, { stop_sequences: [] }],
    ["plain", { user: "alice" }, { metadata: { user_id: PSEUDONYM } }],
    ["plain", { seed: 7, metadata: { a: "b" }, logit_bias: { 1: 1 }, top_k: 1, ...alone }, {}],
    ["plain", { frequency_penalty: 0, logprobs: false, top_logprobs: 2, stop: [], tools: [] }, {}],

    ["plain", { tools: TOOLS }, chosen({ type: "none" })],
    ["plain", { ...choose("none"), ...alone }, chosen({ type: "none" })],
    ["plain", choose("auto"), chosen({ type: "auto" })],
    ["plain", choose("required"), chosen({ type: "any" })],
    ["plain", choose(G), chosen({ type: "tool", name: "g" })],
    ["plain", { ...choose("auto"), ...alone }, chosen({ type: "auto", ...ALONE })],
    ["plain", { ...choose(G), ...alone }, chosen({ type: "tool", name: "g", ...ALONE })],
    ["new", { ...choose("required"), ...ON }, { ...ADAPTIVE, ...chosen({ type: "auto" }) }],
    ["new", { ...choose(G), ...ON }, { ...ADAPTIVE, ...chosen({ type: "auto" }) }],
    [
      "plain",
      { tools: [fn({ parameters: BOUNDED, strict: true })], tool_choice: "auto" },
      { tools: [{ name: "f", input_schema: CLOSED, strict: true }], tool_choice: { type: "auto" } },
    ],
    [
      "lax",
      { tools: [fn({ parameters: BOUNDED, strict: true })] },
      { tools: [{ name: "f", input_schema: BOUNDED }], tool_choice: { type: "none" } },
    ],

    ...[
      [20, 0, 0],
      [21, 0, 0],
      [1, 24, 0],
      [1, 25, 0],
      [2, 0, 8],
      [2, 0, 9],
    ].map(([count = 0, optional = 0, unions = 0]): [keyof typeof MODELS, Json, Json] => {
      const union = (at: number) => (at % 2 ? { type: ["string", "null"] } : { anyOf: [A, B] });
      const demanded = Object.fromEntries(
        Array.from({ length: unions }, (_, at) => [`u${at}`, union(at)]),
      );
      const free = Object.fromEntries(Array.from({ length: optional }, (_, at) => [`o${at}`, {}]));
      const properties = { ...demanded, ...free };
      const parameters = { type: "object", properties, required: Object.keys(demanded) };
      const fits = count <= 20 && optional <= 24 && count * unions <= 16;
      const strictly = { additionalProperties: false };
      const names = Array.from({ length: count }, (_, at) => `f${at}`);
      const sent = names.map((name) => ({
        name,
        input_schema: { ...parameters, ...(fits && strictly) },
        ...(fits && { strict: true }),
      }));
      const tools = names.map((name) => fn({ name, parameters, strict: true }));
      return ["plain", { tools }, { tools: sent, tool_choice: { type: "none" } }];
    }),

    ["new", {}, OFF],
    ["new", ON, ADAPTIVE],
    ["new", { thinking: { type: "disabled" }, reasoning_effort: "high" }, OFF],
    ["new", { reasoning_effort: "high", temperature: 0.3 }, { ...ADAPTIVE, ...effort("high") }],
    ["new", { reasoning_effort: "none" }, OFF],
    ["new", { ...ON, reasoning_effort: "minimal" }, { ...ADAPTIVE, ...effort("low") }],
    ...["low", "medium", "high", "xhigh", "max"].map((depth): [keyof typeof MODELS, Json, Json] => [
      "new",
      { ...ON, reasoning_effort: depth },
      { ...ADAPTIVE, ...effort(depth) },
    ]),
    ["stubborn", {}, {}],
    ["stubborn", { ...ON, reasoning_effort: "low" }, { ...ADAPTIVE, ...effort("low") }],
    ["dated", ON, ADAPTIVE],
    ["checking", {}, OFF],
    ["checking", ON, { thinking: { ...ADAPTIVE.thinking, ...DROPPING } }],
    ["always", {}, { thinking: { type: "adaptive", ...DROPPING } }],
    ["noting", WARM, NOTES],
    ["noting", choose("required"), { ...NOTES, ...chosen({ type: "auto" }) }],
    ["noting", ON, { thinking: { ...ADAPTIVE.thinking, ...DROPPING } }],
    ["unswitched", { ...ON, reasoning_effort: "low", temperature: 0.3 }, { temperature: 0.3 }],
    ["old", ON, budget(64_000, 32_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "minimal" }, budget(10_000, 2_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "low" }, budget(10_000, 2_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "medium" }, budget(10_000, 5_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "high" }, budget(10_000, 8_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "xhigh" }, budget(10_000, 9_000)],
    ["old", { ...ON, max_tokens: 10_000, reasoning_effort: "max" }, budget(10_000, 9_500)],
    ["old", { ...ON, max_tokens: 2_047, reasoning_effort: "low" }, budget(2_047, 1_024)],
    ["old", { ...ON, max_tokens: 100, reasoning_effort: "max" }, budget(1_124, 1_024)],
    ["old", { ...ON, max_tokens: 1_025 }, budget(1_025, 1_024)],
    // No budget fits, so the least one is added to the client's tokens.
    ["old", { ...ON, max_tokens: 1_024 }, budget(2_048, 1_024)],
    ["old", { ...ON, max_tokens: 1 }, budget(1_025, 1_024)],

    ["plain", { response_format: { type: "json_object" } }, { system: JSON_ONLY }],
    ["plain", schema(undefined), { system: JSON_ONLY }],
    ["plain", schema(BOUNDED), { output_config: format(CLOSED) }],
    [
      "new",
      { ...ON, reasoning_effort: "low", ...schema({ type: "object" }) },
      { ...ADAPTIVE, output_config: { effort: "low", ...format(ANY) } },
    ],
    ["plain", { response_format: { type: "text" } }, {}],
  ];
  for (const [model, fields, out] of FIELDS)
    it(`${model}: ${JSON.stringify(fields).slice(0, 100)}`, () =>
      assert.deepEqual(ask(fields, model), { ...HI, model: MODELS[model].upstream_model, ...out }));

  it("a conversation: system texts first, media among the texts, declared calls", () => {
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
      // Clients for other gateways send a document like this.
      image("data:application/pdf;base64,JVBE"),
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
            source("document", "base64", "application/pdf", "JVBE"),
          ],
        },
        { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: { a: 1 } }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "2" }] },
      ],
      // Called tools must be declared, even if none may be called now.
      tools: [{ name: "f", input_schema: { type: "object" } }],
      tool_choice: { type: "none" },
    });
  });

  it("json_object after system texts", () => {
    const messages = [{ role: "system", content: "S" }, ...user("hi")];
    const { system } = ask({ messages, response_format: { type: "json_object" } });
    assert.equal(system, `S\n\n${JSON_ONLY}`);
  });
});

it("objects are closed at every level, and limits are described in words", () =>
  assert.deepEqual(
    closedSchema({
      type: "object",
      additionalProperties: true,
      properties: {
        a: { type: ["object", "null"], properties: {} },
        n: { type: "number", description: "How warm", exclusiveMaximum: 60, multipleOf: 0.5 },
        url: { type: "string", format: "uri" },
        path: { type: "string", format: "path" },
        kind: { oneOf: [{ type: "object" }, { oneOf: [], anyOf: [] }] },
        // Names of properties are not keywords.
        minimum: { type: "string", minLength: 1, pattern: "^a" },
        days: {
          type: "array",
          minItems: 1,
          uniqueItems: true,
          items: { anyOf: [{ type: "object" }, { $ref: "#/$defs/d" }] },
        },
      },
      $defs: { d: { type: "integer", maximum: 3 } },
    }),
    {
      type: "object",
      additionalProperties: false,
      properties: {
        a: { type: ["object", "null"], properties: {}, additionalProperties: false },
        n: { type: "number", description: "How warm; exclusiveMaximum: 60; multipleOf: 0.5" },
        url: { type: "string", format: "uri" },
        path: { type: "string", description: "format: path" },
        kind: {
          anyOf: [
            { type: "object", additionalProperties: false },
            { oneOf: [], anyOf: [] },
          ],
        },
        minimum: { type: "string", description: "minLength: 1; pattern: ^a" },
        days: {
          type: "array",
          description: "minItems: 1; uniqueItems: true",
          items: {
            anyOf: [{ type: "object", additionalProperties: false }, { $ref: "#/$defs/d" }],
          },
        },
      },
      $defs: { d: { type: "integer", description: "maximum: 3" } },
    },
  ));

it("data stay unchanged, whatever they look like", () => {
  const schema = { const: { type: "object" }, enum: [{ minimum: 1 }], default: { type: "object" } };
  assert.deepEqual(closedSchema(schema), schema);
});

it("a property named __proto__ is like any other", () => {
  const closed = closedSchema(JSON.parse('{"properties":{"__proto__":{"type":"object"}}}'));
  const text = '{"properties":{"__proto__":{"type":"object","additionalProperties":false}}}';
  assert.equal(JSON.stringify(closed), text);
});

it("a schema that refers to itself is distinguished from one with many references", () => {
  const to = (name: string) => ({ $ref: `#/$defs/${name}` });
  const list = { properties: { next: to("list") } };
  const chain = Array.from({ length: 2000 }, (_, at) => [`d${at}`, { items: to(`d${at + 1}`) }]);
  for (const [schema, expected] of [
    [{ items: { $ref: "#" } }, true],
    [{ ...to("list"), $defs: { list } }, true],
    [{ properties: { a: { items: { $ref: "#/properties/a" } } } }, true],
    [{ ...to("a"), $defs: { a: { anyOf: [to("b"), {}] }, b: { items: to("a") } } }, true],
    [{ ...to("d0"), $defs: Object.fromEntries(chain) }, true],
    [{ anyOf: [to("a"), to("a"), to("none")], $defs: { a: { items: to("b") }, b: {} } }, false],
    [{ properties: { a: {}, b: { items: { $ref: "#/properties/a" } } } }, false],
  ] as const)
    assert.equal(closedSchema(schema) === undefined, expected, JSON.stringify(schema).slice(0, 90));
});

it("an object with arbitrary names is distinguished from one that allows more members", () => {
  const named = { type: "object", properties: { a: {} } };
  const any = { type: "object" };
  for (const [schema, expected] of [
    [{ ...any, additionalProperties: { type: "string" } }, true],
    [{ ...named, additionalProperties: { type: "string" } }, true],
    [{ ...any, additionalProperties: true }, true],
    [{ ...any, properties: {}, additionalProperties: {} }, true],
    [{ ...named, additionalProperties: {} }, false],
    [{ ...named, additionalProperties: true }, false],
    [{ ...any, additionalProperties: { not: {} } }, false],
    [{ ...named, properties: { additionalProperties: { type: "string" } } }, false],
    [{ ...named, examples: [{ additionalProperties: { a: 1 } }] }, false],
    [{ type: "array", items: { ...any, additionalProperties: { type: "string" } } }, true],
  ] as const)
    assert.equal(closedSchema(schema) === undefined, expected, JSON.stringify(schema));
});
