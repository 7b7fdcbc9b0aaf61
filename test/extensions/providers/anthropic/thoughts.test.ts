// Thoughts that are signed go back with the calls that they led to, and thinking stays as it was when
// the model's turn began.

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

describe("thoughts that come back", () => {
  const REDACTED = { type: "redacted_thinking", data: "cmVkYWN0ZWQ=" };
  const THOUGHTS = [thought("The weather, ", "c2lnMQ=="), REDACTED, thought("then.", "c2lnMg==")];
  const USES = ["toolu_1", "toolu_2"].map((id) => toolUse(id, "f", {}));
  const LOOKING = textBlock("I look.");
  const CALLED = [...THOUGHTS, LOOKING, ...USES];
  /** What is asked when the client has answered both calls; it does not send thoughts back. */
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
    it(`as they came, redacted ones too, ${name}, and in the turns before too`, () => {
      const dialect = createAnthropicDialect(createSignatureStore());
      const { push } = dialect.decoder(TARGET);
      for (const event of events) push(event);
      const later = [{ role: "assistant", content: "Fine." }, ...user("and?")];
      for (const more of [[], later])
        assert.deepEqual(askedAfter(dialect, more), { thinking: ADAPTIVE, content: CALLED });
    });

  it("before the calls that they came before, but the first at the beginning", () => {
    const dialect = createAnthropicDialect(createSignatureStore());
    const [first, , second] = THOUGHTS;
    const content = [LOOKING, first!, USES[0]!, second!, USES[1]!];
    dialect.decoder(TARGET).push(message(content, "tool_use"));
    assert.deepEqual(askedAfter(dialect).content, [first, LOOKING, USES[0], second, USES[1]]);
  });

  it("also where nobody asked for them, of a model that cannot stop thinking", () => {
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

  it("to the provider and the account that have them, also after a reload, and to no other", () => {
    const scope = { baseUrl: "https://a.test", account: "one" };
    const inScope = (over: object) =>
      formats.dialects.get("anthropic")!.create({ ...scope, ...over });
    inScope({}).decoder(TARGET).push(message(CALLED, "tool_use"));
    assert.deepEqual(askedAfter(inScope({})).content, CALLED);
    for (const other of [{ account: "two" }, { baseUrl: "https://b.test" }])
      assert.deepEqual(askedAfter(inScope(other)), { thinking: OFF, content: [LOOKING, ...USES] });
  });

  it("but those of more than 4 MiB before one call are forgotten, and those before the next are kept", () => {
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

describe("edits of a client's own request that clear thoughts", () => {
  const clearing = { type: "clear_thinking_20251015", keep: "all" };
  const other = { type: "clear_tool_uses_20250919" };
  for (const [type, edits, kept] of [
    ["disabled", [clearing, other], { edits: [other] }],
    ["disabled", [clearing], undefined],
    ["adaptive", [clearing, other], { edits: [clearing, other] }],
  ] as const)
    it(`thinking ${type}, ${edits.length} edits`, () => {
      const chat = { ...chatRequest({ model: "x", messages: user("hi") }), tool_choice: undefined };
      const own = { thinking: { type }, context_management: { edits } };
      const body = nativeRequestBody(own, chat, TARGET) as Json;
      assert.deepEqual(body["context_management"], kept);
    });
});

describe("thinking within a turn of several calls", () => {
  const BUDGET = { type: "enabled", budget_tokens: 1_500 };
  const use = (id: string) => toolUse(id, "f", {});
  const One = thought("One.", "s1");
  /** The model's steps: the first thinks, the second does not, the third thinks again. */
  const STEPS = [
    [One, use("toolu_1")],
    [textBlock("And now"), use("toolu_2")],
    [thought("Three.", "s3"), use("toolu_3"), use("toolu_4")],
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
    const gateway = await startGateway(
      t,
      configFor(url, [], {
        providers: { claude: { dialect: "anthropic", base_url: url, api_key: "sk-claude" } },
        models: { m: { provider: "claude", reasoning: true, ...settings } },
      }),
    );

    async function ask(messages: readonly Json[]): Promise<Json> {
      const fields = { model: "m", ...ON, max_tokens: 3_000, ...TOOLS, messages };
      const { reasoning_content: _, ...said } = (await json(await gateway.chat(fields))).choices[0]
        .message;
      return said; // as most clients keep it
    }

    /** Asks, and answers all calls, until the model calls no more. `beside`: follows each result. */
    async function loop(beside: readonly Json[] = []): Promise<Json[]> {
      const messages: Json[] = user("hi");
      for (let step = 0; step <= steps.length; step += 1) {
        const said = await ask(messages);
        const results = (said["tool_calls"] ?? []).map(({ id }: Json) => resultOf(id));
        messages.push(said, ...results, ...(results.length > 0 ? beside : []));
      }
      return messages;
    }
    const bodies = (): Json[] => asked.map(({ body }) => body);
    const thinking = (): unknown[] => bodies().map((body) => body["thinking"]);
    /** What the assistant has said in the last request. */
    const said = (at = -1): unknown[] =>
      bodies()
        .at(at)!
        ["messages"].filter(({ role }: Json) => role === "assistant")
        .map(({ content }: Json) => content);
    return { ask, loop, bodies, thinking, said };
  }

  for (const [name, thinking] of [
    ["adaptive", ADAPTIVE],
    ["budget", BUDGET],
  ] as const)
    it(`${name}: stays on although some calls had no thoughts, and all thoughts go back`, async (t) => {
      const served = await bench(t, STEPS, { thinking: name });
      const done = await served.loop();
      await served.ask([...done, ...user("again")]);
      assert.deepEqual(served.thinking(), Array(5).fill(thinking));
      assert.deepEqual(served.said(3), STEPS);
      // The provider's cache has what was asked before.
      for (const [place, { messages }] of served.bodies().entries()) {
        const before = served.bodies()[place - 1]?.["messages"] ?? [];
        assert.deepEqual(messages.slice(0, before.length), before);
      }
    });

  it("stays on where the user says something beside a result", async (t) => {
    const served = await bench(t, STEPS, { thinking: "budget" });
    await served.loop(user("quickly"));
    assert.deepEqual(served.thinking(), Array(4).fill(BUDGET));
  });

  it("stays on where an adaptive model began without a thought", async (t) => {
    const steps = [[use("toolu_1")], [thought("Two.", "s"), use("toolu_2")]];
    const served = await bench(t, steps);
    await served.loop();
    assert.deepEqual(served.thinking(), Array(3).fill(ADAPTIVE));
    assert.deepEqual(served.said(), steps);
  });

  it("stays off where a model with a budget began without a thought, until the turn ends", async (t) => {
    const served = await bench(t, [[use("toolu_1")], [use("toolu_2")]], { thinking: "budget" });
    const done = await served.loop();
    await served.ask([...done, ...user("again")]);
    assert.deepEqual(served.thinking(), [BUDGET, OFF, OFF, BUDGET]);
  });

  it("is off where the client has begun the answer", async (t) => {
    const served = await bench(t, []);
    await served.ask([...user("hi"), { role: "assistant", content: "It is" }]);
    assert.deepEqual(served.thinking(), [OFF]);
  });

  it("stays off where another model began, whatever is known of later calls", async (t) => {
    const served = await bench(t, STEPS);
    await served.loop();
    await served.ask([...user("hi"), ...calledOf("call_x"), ...calledOf("toolu_1")]);
    assert.deepEqual(served.thinking().at(-1), OFF);
    assert.deepEqual(served.said(), [[use("call_x")], [use("toolu_1")]]);
    await served.ask([...user("hi"), ...calledOf("toolu_1"), ...calledOf("call_x")]);
    assert.deepEqual(served.thinking().at(-1), ADAPTIVE);
    assert.deepEqual(served.said(), [STEPS[0], [use("call_x")]]);
  });
});
