// Thinking within a turn of several tool calls: it stays as it was when the turn began, and signed
// thoughts go back where they were.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { traitsOf } from "../../../../src/config/vendors.ts";
import { createAnthropicDialect } from "../../../../src/extensions/providers/anthropic/index.ts";
import {
  createSignatureStore,
  type SignatureStore,
} from "../../../../src/extensions/providers/turns/index.ts";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { configFor, json, startGateway, user } from "../../../support/gateway.ts";
import { startProvider, status } from "../../../support/provider.ts";

type Json = Record<string, any>;

const thought = (text: string) => ({
  type: "thinking",
  thinking: text,
  signature: `sig of ${text}`,
});
const use = (id: string) => ({ type: "tool_use", id, name: "f", input: {} });
const words = (text: string) => ({ type: "text", text });
const isResult = ({ type }: Json) => type === "tool_result";
const ADAPTIVE = { type: "adaptive", display: "summarized" };
const OFF = { type: "disabled" };
const BUDGET = { type: "enabled", budget_tokens: 1_500 };

/** The model's steps: the first thinks, the second does not, the third thinks again. */
const STEPS = [
  [thought("One."), use("toolu_1")],
  [words("And now"), use("toolu_2")],
  [thought("Three."), use("toolu_3"), use("toolu_4")],
];

/** A gateway, and behind it a model that takes these steps in each turn, and then answers. */
async function bench(t: TestContext, steps: readonly Json[][], settings: object = {}) {
  const { url, asked } = await startProvider(t, (request) => {
    const { messages } = request.body;
    const words = messages.findLastIndex(
      ({ role, content }: Json) => role === "user" && !content.some(isResult),
    );
    const step = messages.slice(words).filter(({ role }: Json) => role === "assistant").length;
    const content = steps[step] ?? [{ type: "text", text: "Done." }];
    const stop_reason = steps[step] ? "tool_use" : "end_turn";
    const usage = { input_tokens: 5, output_tokens: 5 };
    return status(200, { type: "message", content, stop_reason, usage })(request);
  });
  const gateway = await startGateway(
    t,
    configFor(url, [], {
      providers: { claude: { dialect: "anthropic", base_url: url, api_key: "sk-claude" } },
      models: { m: { provider: "claude", reasoning: true, ...settings } },
    }),
  );

  async function ask(messages: readonly Json[]): Promise<Json> {
    const response = await gateway.chat({
      model: "m",
      thinking: { type: "enabled" },
      max_tokens: 3_000,
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: "auto",
      messages,
    });
    assert.equal(response.status, 200);
    const { message } = (await json(response)).choices[0];
    delete message["reasoning_content"]; // as most clients do
    return message;
  }

  /** Asks, and answers all calls, until the model calls no more. `beside`: follows each result. */
  async function loop(history: readonly Json[], beside: readonly Json[] = []): Promise<Json[]> {
    const messages = [...history];
    for (let step = 0; step <= steps.length; step += 1) {
      const said = await ask(messages);
      messages.push(said);
      const calls: Json[] = said["tool_calls"] ?? [];
      if (calls.length === 0) return messages;
      messages.push(
        ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "1" })),
        ...beside,
      );
    }
    return assert.fail("the model does not end its turn");
  }
  const bodies = (): Json[] => asked.map(({ body }) => body);
  const thinking = (): unknown[] => bodies().map(({ thinking }) => thinking);
  return { ask, loop, bodies, thinking };
}

const said = (body: Json): Json[] =>
  body["messages"]
    .filter(({ role }: Json) => role === "assistant")
    .map((turn: Json) => turn.content);

describe("thinking within a turn of several calls", { concurrency: 2 }, () => {
  for (const [name, thinking] of [
    ["adaptive", ADAPTIVE],
    ["budget", BUDGET],
  ] as const)
    it(`${name}: stays on although some calls had no thoughts, and all thoughts go back`, async (t) => {
      const served = await bench(t, STEPS, { thinking: name });
      const done = await served.loop(user("hi"));
      await served.ask([...done, ...user("again")]);
      const bodies = served.bodies();
      assert.deepEqual(served.thinking(), Array(5).fill(thinking));
      assert.deepEqual(said(bodies[3]!), STEPS);
      // The provider's cache has what was asked before.
      for (const [place, { messages }] of bodies.entries()) {
        const before = bodies[place - 1]?.["messages"] ?? [];
        assert.deepEqual(messages.slice(0, before.length), before);
      }
    });

  it("stays on where the user says something beside a result", async (t) => {
    const served = await bench(t, STEPS, { thinking: "budget" });
    await served.loop(user("hi"), user("quickly"));
    assert.deepEqual(served.thinking(), Array(4).fill(BUDGET));
  });

  it("stays on where an adaptive model began without a thought", async (t) => {
    const steps = [[use("toolu_1")], [thought("Two."), use("toolu_2")]];
    const served = await bench(t, steps);
    await served.loop(user("hi"));
    assert.deepEqual(served.thinking(), Array(3).fill(ADAPTIVE));
    assert.deepEqual(said(served.bodies()[2]!), steps);
  });

  it("stays off where a model with a budget began without a thought, until the turn ends", async (t) => {
    const served = await bench(t, [[use("toolu_1")], [use("toolu_2")]], { thinking: "budget" });
    const done = await served.loop(user("hi"));
    await served.ask([...done, ...user("again")]);
    assert.deepEqual(served.thinking(), [BUDGET, OFF, OFF, BUDGET]);
  });

  it("stays off where another model began, whatever is known of later calls", async (t) => {
    const served = await bench(t, STEPS);
    await served.loop(user("hi"));
    const foreign = (id: string): Json[] => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: id, content: "1" },
    ];
    await served.ask([...user("hi"), ...foreign("call_x"), ...foreign("toolu_1")]);
    assert.deepEqual(served.thinking().at(-1), OFF);
    assert.deepEqual(said(served.bodies().at(-1)!), [[use("call_x")], [use("toolu_1")]]);
    await served.ask([...user("hi"), ...foreign("toolu_1"), ...foreign("call_x")]);
    assert.deepEqual(served.thinking().at(-1), ADAPTIVE);
    assert.deepEqual(said(served.bodies().at(-1)!), [STEPS[0], [use("call_x")]]);
  });
});

describe("a thought that is forgotten", () => {
  const target = (thinking: string) => ({
    upstreamModel: "m",
    reasoning: true,
    traits: { ...traitsOf({ vendor: "anthropic" }, { reasoning: true }), thinking },
  });
  /** Three calls in turn, of which these are known, as the provider is asked. */
  function asked(signatures: SignatureStore, thinking: string): Json {
    const calls = ["toolu_1", "toolu_2", "toolu_3"].flatMap((id) => [
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: id, content: "1" },
    ]);
    const chat = chatRequest({
      model: "m",
      max_tokens: 3_000,
      thinking: { type: "enabled" },
      messages: [...user("hi"), ...calls],
    });
    return createAnthropicDialect(signatures).request(chat, target(thinking)).body;
  }
  const remember = (signatures: SignatureStore, ids: readonly string[]) => {
    for (const id of ids) signatures.set(id, JSON.stringify([thought(id)]));
  };

  for (const [name, on] of [
    ["adaptive", ADAPTIVE],
    ["budget", BUDGET],
  ] as const) {
    it(`${name}: of a later call changes nothing else`, () => {
      const signatures = createSignatureStore();
      remember(signatures, ["toolu_1", "toolu_3"]);
      const body = asked(signatures, name);
      assert.deepEqual(body["thinking"], on);
      assert.deepEqual(said(body), [
        [thought("toolu_1"), use("toolu_1")],
        [use("toolu_2")],
        [thought("toolu_3"), use("toolu_3")],
      ]);
    });

    it(`${name}: of the first call switches thinking off, and no thought goes back`, () => {
      // There is room for two thoughts: the least recently used one is the first.
      const signatures = createSignatureStore(600);
      remember(signatures, ["toolu_1", "toolu_2", "toolu_3"]);
      const body = asked(signatures, name);
      assert.deepEqual(body["thinking"], OFF);
      assert.deepEqual(said(body), [[use("toolu_1")], [use("toolu_2")], [use("toolu_3")]]);
    });
  }
});
