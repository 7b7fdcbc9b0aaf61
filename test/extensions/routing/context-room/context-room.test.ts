// Which models have room for a prompt; which candidates are tried after one was too small, in which
// order; and `check`'s warnings about aliases with unknown sizes.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Model } from "../../../../src/core/routing/model.ts";
import { warningsOf } from "../../../../src/extensions/operations/commands/warnings.ts";
import { withMoreRoom, withRoom } from "../../../../src/extensions/routing/context-room/index.ts";
import { checkConfig } from "../../../support/config.ts";
import { configFor, json, user, startGateway } from "../../../support/gateway.ts";
import { speak, status, type Behaviour, startProvider } from "../../../support/provider.ts";
import { catalogOf, chatOf, settingsFor } from "../../../support/routing.ts";

const { models } = catalogOf(
  settingsFor({
    small: { context_tokens: 1_000 },
    tiny: { context_tokens: 500 },
    middle: { context_tokens: 5_000 },
    large: { context_tokens: 100_000 },
    unknown: {},
    unsure: {},
  }),
);
const named = (names: string) => names.split(" ").map((name) => models.get(name)!);
const names = (list: readonly Model[]) => list.map(({ name }) => name).join(" ");

describe("candidates with room", () => {
  const all = named("small middle large unknown");
  /** A prompt of about this many tokens. */
  const prompt = (tokens: number, over: object = {}) =>
    chatOf({ messages: user("four".repeat(tokens)), ...over });

  it("are those with room for three quarters of the estimate and the reply, and those of unknown size", () => {
    for (const [chat, expected] of [
      [prompt(10), "small middle large unknown"],
      [prompt(1_300), "small middle large unknown"],
      [prompt(1_400), "middle large unknown"],
      [prompt(1_000, { max_tokens: 4_500 }), "large unknown"],
    ] as const)
      assert.equal(names(withRoom(all, chat)), expected);
  });

  it("are all of them if none seems to have room, or if there is only one", () => {
    for (const candidates of [all.slice(0, 2), all.slice(0, 1)])
      assert.deepEqual(withRoom(candidates, prompt(50_000)), candidates);
  });
});

const full = status(400, { error: { message: "x", code: "context_length_exceeded" } });
const busy = status(429, { error: { message: "x" } });

/**
 * The models of an alias in order: each one's behaviour, and its `context_tokens` (null: not
 * stated).
 */
type Models = Readonly<Record<string, readonly [Behaviour, number | null]>>;

/** Asks the alias. Returns the models that were tried, in order, and what the client got. */
async function ask(t: TestContext, models: Models) {
  const names = Object.keys(models);
  const provider = await startProvider(t, (asked) => models[asked.body["model"]]![0](asked));
  const sizes = names.map((name) => [name, { context_tokens: models[name]![1] }]);
  const over = { models: Object.fromEntries(sizes), aliases: { x: { models: names } } };
  const gateway = await startGateway(t, configFor(provider.url, names, over));
  const response = await gateway.chat({ model: "x", messages: user("hi") });
  const { error, model } = await json(response);
  return {
    order: provider.asked.map(({ body }) => body["model"]).join(" "),
    got: `${response.status} ${error?.code ?? model}`,
    message: error?.message,
  };
}

describe("after a prompt was too long for some candidates", () => {
  const mixed = "unknown large unsure middle";
  const ROWS: readonly [what: string, full: string, left: string, asked: string][] = [
    ["larger ones come before unknown ones", "small", mixed, "large middle unknown unsure"],
    ["those known to have no more room are left out", "small", "small tiny unsure", "unsure"],
    ["the largest that was too small counts", "middle small", "small unknown", "unknown"],
    ["after unknown sizes only, any size may be larger", "unknown", "unsure tiny", "tiny unsure"],
  ];
  for (const [what, full, left, asked] of ROWS)
    it(what, () => assert.equal(names(withMoreRoom(named(left), named(full))), asked));

  it("the order also holds in a gateway, through any failures", async (t) => {
    const sizes = { a: 1_000, b: null, c: 3_000, d: null, e: 9_000 };
    const refused = Object.entries(sizes).map(([name, size]) => [name, [full, size]]);
    const found = await ask(t, Object.fromEntries(refused));
    assert.deepEqual([found.order, found.got], ["a c e b d", "400 context_length_exceeded"]);
    const fine = speak("Fine.");
    const shut = await ask(t, { a: [full, 1_000], b: [fine, null], c: [busy, 2_000] });
    assert.deepEqual([shut.order, shut.got], ["a c b", "200 b"]);
    const other = await ask(t, { a: [busy, 1_000], b: [fine, null], c: [fine, 2_000] });
    assert.deepEqual([other.order, other.got], ["a b", "200 b"], "no prompt was too long");
  });

  it("the error names the largest known size of those that rejected", async (t) => {
    const { message } = await ask(t, { a: [full, 1_000], b: [full, null] });
    assert.match(message, /maximum context length is 1000 tokens/);
  });
});

const warned = (sizes: readonly (number | null)[], enabled = true) => {
  const models = Object.fromEntries(
    sizes.map((context_tokens, at) => ["abc"[at], { provider: "demo", context_tokens }]),
  );
  const aliases = { x: { models: Object.keys(models), enabled } };
  const config = checkConfig({ providers: { demo: { dialect: "demo" } }, models, aliases }, {});
  return warningsOf(config).map(({ path, message }) => `${path.join(".")}: ${message}`);
};

it("check warns if one of several candidates has no context_tokens, and only then", () => {
  const told = (names: string) => [
    `aliases.x: has candidates without context_tokens (${names}): a prompt that is too long for another one goes to them last`,
  ];
  assert.deepEqual(warned([1_000, null, null]), told("models.b, models.c"));
  assert.deepEqual(warned([null, null]), told("models.a, models.b"));
  for (const sizes of [[1_000, 2_000], [null]]) assert.deepEqual(warned(sizes), []);
  assert.deepEqual(warned([1_000, null], false), []);
});
