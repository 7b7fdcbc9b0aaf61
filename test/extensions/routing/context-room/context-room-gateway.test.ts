// A prompt that is too long for one candidate of an alias: which candidates are asked after it, in
// which order; and what `check` says of aliases that cannot know.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { checkConfig } from "../../../support/config.ts";
import { warningsOf } from "../../../../src/extensions/operations/commands/warnings.ts";
import { ended } from "../../../support/command.ts";
import { configFor, json, user } from "../../../support/gateway.ts";
import { createMemoryGateway, memoryProvider } from "../../../support/memory.ts";
import { speak, status, type Behaviour } from "../../../support/provider.ts";

const full = status(400, { error: { message: "x", code: "context_length_exceeded" } });
const busy = status(429, { error: { message: "x" } });

/**
 * The models of an alias in its order: how each answers, and its `context_tokens`, null if that is
 * not stated.
 */
type Models = Readonly<Record<string, readonly [Behaviour, number | null]>>;

/** Asks the alias; gives the models that were asked, in this order, and what the client got. */
async function ask(t: TestContext, models: Models) {
  const behaviours = Object.fromEntries(
    Object.entries(models).map(([name, [does]]) => [name, does]),
  );
  const provider = memoryProvider(t, behaviours);
  const gateway = createMemoryGateway(
    configFor(provider.url, Object.keys(models), {
      models: Object.fromEntries(
        Object.entries(models).map(([name, [, size]]) => [
          name,
          size === null ? {} : { context_tokens: size },
        ]),
      ),
      aliases: { x: { models: Object.keys(models) } },
    }),
  );
  const response = await gateway.chat({ model: "x", messages: user("hi") });
  const { error, model } = await json(response);
  return {
    order: provider.asked.map(({ body }) => body["model"]).join(" "),
    got: `${response.status} ${error?.code ?? model}`,
    message: error?.message,
  };
}

describe("after a prompt was too long for a candidate", { concurrency: 2 }, () => {
  const fine = speak("Fine.");
  const ROWS: readonly [what: string, models: Models, order: string, got: string][] = [
    ["a candidate of unknown size is asked", { a: [full, 1_000], b: [fine, null] }, "a b", "200 b"],
    [
      "those known to have more room come before those of unknown size",
      { a: [full, 1_000], b: [fine, null], c: [fine, 2_000] },
      "a c",
      "200 c",
    ],
    [
      "each group keeps the alias's order",
      {
        a: [full, 1_000],
        b: [full, null],
        c: [full, 3_000],
        d: [full, null],
        e: [full, 9_000],
      },
      "a c e b d",
      "400 context_length_exceeded",
    ],
    [
      "those known to have no more room are left out",
      { a: [full, 1_000], b: [fine, 1_000], c: [fine, 500], d: [fine, null] },
      "a d",
      "200 d",
    ],
    [
      "the largest that was too small counts",
      { a: [full, 1_000], b: [full, 3_000], c: [fine, 2_000], d: [fine, null] },
      "a b d",
      "200 d",
    ],
    [
      "where the first is of unknown size, any known size may be more",
      { a: [full, null], b: [fine, null], c: [fine, 1_000] },
      "a c",
      "200 c",
    ],
    [
      "two of unknown size: the second is asked",
      { a: [full, null], b: [fine, null] },
      "a b",
      "200 b",
    ],
    [
      "a known one that is busy is followed by the unknown one",
      { a: [full, 1_000], b: [fine, null], c: [busy, 2_000] },
      "a c b",
      "200 b",
    ],
    [
      "without such a refusal the alias's order stands, whatever is known",
      { a: [busy, 1_000], b: [fine, null], c: [fine, 2_000] },
      "a b",
      "200 b",
    ],
  ];
  for (const [what, models, order, got] of ROWS) {
    it(what, async (t) => {
      const found = await ask(t, models);
      assert.deepEqual([found.order, found.got], [order, got]);
    });
  }

  it("the error names the largest size that is known of those that refused", async (t) => {
    const { message } = await ask(t, { a: [full, 1_000], b: [full, null] });
    assert.match(message, /maximum context length is 1000 tokens/);
  });
});

describe("check, of aliases with candidates of unknown size", () => {
  const config = (sizes: Readonly<Record<string, number | null>>, enabled = true) => ({
    providers: { demo: { dialect: "demo" } },
    models: Object.fromEntries(
      Object.entries(sizes).map(([name, size]) => [
        name,
        { provider: "demo", ...(size !== null && { context_tokens: size }) },
      ]),
    ),
    aliases: { x: { models: Object.keys(sizes), enabled } },
  });

  it("warns where one of several candidates has no context_tokens, and only there", () => {
    const warned = (given: object) =>
      warningsOf(checkConfig(given, {})).map(({ path, message }) => [path.join("."), message]);
    const told = (names: string) => [
      [
        "aliases.x",
        `has candidates without context_tokens (${names}): a prompt that is too long for another one goes to them last`,
      ],
    ];
    assert.deepEqual(warned(config({ a: 1_000, b: null, c: null })), told("models.b, models.c"));
    assert.deepEqual(warned(config({ a: null, b: null })), told("models.a, models.b"));
    assert.deepEqual(warned(config({ a: 1_000, b: 2_000 })), []);
    assert.deepEqual(warned(config({ a: null })), []);
    assert.deepEqual(warned(config({ a: 1_000, b: null }, false)), []);
  });

  it("prints the warning, and the configuration is valid all the same", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "chat-gateway-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "gateway.json");
    writeFileSync(file, JSON.stringify(config({ a: 1_000, b: null })));
    const { code, stderr } = await ended(t, ["check", "--config", file]);
    assert.deepEqual(
      [code, stderr],
      [
        0,
        "chat-gateway: warning: aliases.x has candidates without context_tokens (models.b): a prompt that is too long for another one goes to them last\n",
      ],
    );
  });
});
