// Signed thinking is sent back with the calls that it led to, and the thinking setting stays as at
// the beginning of the model's turn.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import type { Dialect } from "../../../../src/core/providers/dialect.ts";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import { nativeRequestBody } from "../../../../src/extensions/providers/anthropic/request.ts";
import { createSignatureStore } from "../../../../src/extensions/providers/turns/index.ts";
import { formats } from "../../../support/config.ts";
import { configFor, json, user, startGateway } from "../../../support/gateway.ts";
import { status, startProvider } from "../../../support/provider.ts";
import { askedBy, calledOf, resultOf, targetOf } from "../dialect-bench.ts";
import {
  block,
  ended,
  message,
  start,
  STOP,
  streamOf,
  textBlock,
  think,
  thought,
  toolUse,
} from "./events.ts";

type Json = Record<string, any>;

const TARGET = targetOf({ vendor: "anthropic" }, { reasoning: true });
const ON = { thinking: { type: "enabled" } };
const TOOLS = { tools: [{ type: "function", function: { name: "f" } }], tool_choice: "auto" };
const ADAPTIVE = { type: "adaptive", display: "summarized" };
const OFF = { type: "disabled" };

describe("thoughts are sent back", () => {
  const REDACTED = { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" };
  const THOUGHTS = [thought("The weather, ", "c2lnMQ=="), REDACTED, thought("then.", "c2lnMg==")];
  const USES = ["toolu_1", "toolu_2"].map((id) => toolUse(id, "f", {}));
  const LOOKING = textBlock("I look.");
  const CALLED = [...THOUGHTS, LOOKING, ...USES];
  /**
   * The request after the client has answered both calls. The client does not send thoughts back.
   */
  function askedAfter(dialect: Dialect, later: readonly Json[] = []) {
    const [calls, ...results] = calledOf("toolu_1", "toolu_2");
    const messages = [...user("hi"), { ...calls, content: "I look." }, ...results, ...later];
    const { thinking, messages: sent } = askedBy(dialect, { ...ON, messages }, TARGET).body;
    return { thinking, content: sent[1].content };
  }

  for (const [name, events] of [
    ["whole", [message(CALLED, "tool_use")]],
    ["streamed", [start(), ...streamOf(CALLED), ended("tool_use"), STOP]],
  ] as const)
    it(`unchanged, redacted ones too, ${name}, and in earlier turns too`, () => {
      const dialect = createAnthropicDialect(createSignatureStore());
      const { push } = dialect.decoder(TARGET);
      for (const event of events) push(event);
      const later = [{ role: "assistant", content: "Fine." }, ...user("and?")];
      for (const more of [[], later])
        assert.deepEqual(askedAfter(dialect, more), { thinking: ADAPTIVE, content: CALLED });
    });

  it("before the calls that they preceded, except the first at the beginning", () => {
    const dialect = createAnthropicDialect(createSignatureStore());
    const [first, , second] = THOUGHTS;
    const content = [LOOKING, first!, USES[0]!, second!, USES[1]!];
    dialect.decoder(TARGET).push(message(content, "tool_use"));
    assert.deepEqual(askedAfter(dialect).content, [first, LOOKING, USES[0], second, USES[1]]);
  });

  it("even if nobody requested them, for a model that cannot disable thinking", () => {
    const stubborn = targetOf({ vendor: "anthropic", thinking_off: false }, { reasoning: true });
    const dialect = createAnthropicDialect(createSignatureStore());
    dialect.decoder(stubborn).push(message([THOUGHTS[0]!, USES[0]!], "tool_use"));
    const messages = [...user("hi"), ...calledOf("toolu_1")];
    const fields = { ...TOOLS, tool_choice: "required", temperature: 0.5, messages };
    const { body } = askedBy(dialect, fields, stubborn);
    assert.deepEqual(
      [body["messages"][1].content[0], body["temperature"], body["tool_choice"], body["thinking"]],
      [THOUGHTS[0], undefined, { type: "auto" }, undefined],
    );
  });

  it("but not with `between_tools`, which cannot be combined with dropping changed ones", () => {
    const sonnet = { upstream_model: "claude-sonnet-5-5", reasoning: true };
    const target = targetOf({ vendor: "anthropic" }, sonnet);
    const dialect = createAnthropicDialect(createSignatureStore());
    dialect.decoder(target).push(message(CALLED, "tool_use"));
    const messages = [...user("hi"), ...calledOf("toolu_1", "toolu_2")];
    const contentFor = (fields: object) =>
      askedBy(dialect, { ...TOOLS, ...fields, messages }, target).body["messages"][1].content;
    assert.deepEqual([contentFor({}), contentFor(ON)], [USES, [...THOUGHTS, ...USES]]);
  });

  it("only to their provider and account, also after a reload", () => {
    const scope = { baseUrl: "https://a.test", account: "one" };
    const inScope = (over: object) =>
      formats.dialects.get("anthropic")!.create({ ...scope, ...over });
    inScope({}).decoder(TARGET).push(message(CALLED, "tool_use"));
    assert.deepEqual(askedAfter(inScope({})).content, CALLED);
    for (const other of [{ account: "two" }, { baseUrl: "https://b.test" }])
      assert.deepEqual(askedAfter(inScope(other)), { thinking: OFF, content: [LOOKING, ...USES] });
  });

  it("except those of more than 4 MiB before one call; those before the next are kept", () => {
    const signatures = createSignatureStore();
    const { push } = createAnthropicDialect(signatures).decoder(TARGET);
    const pieces = Array.from({ length: 5 }, () => think("x".repeat(1024 * 1024)));
    for (const event of [
      ...block(0, thought("", ""), ...pieces),
      ...block(1, thought("more", "")),
      ...block(2, toolUse("a", "f", {})),
      ...block(3, thought("Hm.", "s")),
      ...block(4, toolUse("b", "f", {})),
    ])
      push(event);
    assert.equal(signatures.get("a"), undefined);
    assert.equal(signatures.get("b"), JSON.stringify([thought("Hm.", "s")]));
  });
});

const clearing = { type: "clear_thinking_20251015", keep: "all" };
const other = { type: "clear_tool_uses_20250919" };
for (const [type, edits, kept] of [
  ["disabled", [clearing, other], { edits: [other] }],
  ["disabled", [clearing], undefined],
  ["adaptive", [clearing, other], { edits: [clearing, other] }],
] as const)
  it(`or cleared by edits in a client's own request: thinking ${type}, ${edits.length} edits`, () => {
    const chat = { ...chatRequest({ model: "x", messages: user("hi") }), tool_choice: undefined };
    const own = { thinking: { type }, context_management: { edits } };
    const body = nativeRequestBody(own, chat, TARGET) as Json;
    assert.deepEqual(body["context_management"], kept);
  });

describe("thinking within a turn of several calls", () => {
  const BUDGET = { type: "enabled", budget_tokens: 1_500 };
  const [one, two, ...last] = ["1", "2", "3", "4"].map((at) => toolUse(`toolu_${at}`, "f", {}));
  /** The model's steps: the first thinks, the second does not, the third thinks again. */
  const STEPS = [
    [thought("One.", "s1"), one!],
    [textBlock("And now"), two!],
    [thought("Three.", "s3"), ...last],
  ];
  const isResult = ({ type }: Json) => type === "tool_result";

  /** A gateway before a model that takes these steps in each turn, and then answers. */
  async function bench(t: TestContext, steps: readonly object[][], settings: object = {}) {
    const { url, asked } = await startProvider(t, (request) => {
      const { messages } = request.body;
      const words = messages.findLastIndex(
        ({ role, content }: Json) => role === "user" && !content.some(isResult),
      );
      const step = messages.slice(words).filter(({ role }: Json) => role === "assistant").length;
      const content = steps[step] ?? [textBlock("Done.")];
      status(200, message(content, steps[step] ? "tool_use" : "end_turn"))(request);
    });
    const { chat } = await startGateway(
      t,
      configFor(url, [], {
        providers: { claude: { dialect: "anthropic", base_url: url, api_key: "sk-claude" } },
        models: { m: { provider: "claude", reasoning: true, ...settings } },
      }),
    );
    /** The model's reply without its thinking, as most clients keep it. */
    async function ask(messages: readonly Json[]): Promise<Json> {
      const { choices } = await json(
        await chat({ model: "m", ...ON, max_tokens: 3_000, ...TOOLS, messages }),
      );
      const { reasoning_content: _, ...said } = choices[0].message;
      return said;
    }
    /** The thinking setting of each request. */
    const thinking = () => asked.map(({ body }) => body["thinking"]);
    const said = (at: number): unknown[] =>
      asked
        .at(at)!
        .body["messages"].filter(({ role }: Json) => role === "assistant")
        .map(({ content }: Json) => content);
    return { ask, asked, thinking, said };
  }

  const UNTHOUGHT = [[one!], [thought("Two.", "s"), two!]];
  const NEVER = [[one!], [two!]];
  // The client's setting, the steps, what follows each result, and the expected thinking of all
  // requests.
  for (const [name, thinking, steps, beside, expected] of [
    ["on although some calls had no thoughts", "adaptive", STEPS, [], Array(5).fill(ADAPTIVE)],
    ["on although some calls had no thoughts", "budget", STEPS, [], Array(5).fill(BUDGET)],
    ["on if the user adds a message", "budget", STEPS, user("Quick"), Array(5).fill(BUDGET)],
    ["on although it began without thinking", "adaptive", UNTHOUGHT, [], Array(4).fill(ADAPTIVE)],
    ["off if it began so, until the turn ends", "budget", NEVER, [], [BUDGET, OFF, OFF, BUDGET]],
  ] as const)
    it(`${thinking}: stays ${name}, and all thoughts go back`, async (t) => {
      const served = await bench(t, steps, { thinking });
      const messages: Json[] = user("hi");
      for (let step = 0; step <= steps.length; step += 1) {
        const said = await served.ask(messages);
        const results = (said["tool_calls"] ?? []).map(({ id }: Json) => resultOf(id));
        messages.push(said, ...results, ...(results.length > 0 ? beside : []));
      }
      await served.ask([...messages, ...user("again")]);
      assert.deepEqual(served.thinking(), expected);
      assert.deepEqual(served.said(steps.length), steps);
      // The previous request is in the provider's cache.
      for (const [place, { body }] of served.asked.entries()) {
        const before = served.asked[place - 1]?.body["messages"] ?? [];
        assert.deepEqual(body["messages"].slice(0, before.length), before);
      }
    });

  it("is off if the client has begun the answer", async (t) => {
    const served = await bench(t, []);
    await served.ask([...user("hi"), { role: "assistant", content: "It is" }]);
    assert.deepEqual(served.thinking(), [OFF]);
  });

  it("stays off if another model began, whatever is known of later calls", async (t) => {
    const served = await bench(t, [STEPS[0]!]);
    await served.ask(user("hi"));
    const other = toolUse("call_x", "f", {});
    await served.ask([...user("hi"), ...calledOf("call_x"), ...calledOf("toolu_1")]);
    assert.deepEqual(served.said(-1), [[other], [one]]);
    await served.ask([...user("hi"), ...calledOf("toolu_1"), ...calledOf("call_x")]);
    assert.deepEqual(served.said(-1), [STEPS[0], [other]]);
    assert.deepEqual(served.thinking(), [ADAPTIVE, OFF, ADAPTIVE]);
  });
});
