// Which models have room for a prompt.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withRoom } from "../../../../src/extensions/routing/context-room/index.ts";
import type { Model } from "../../../../src/core/routing/model.ts";
import { catalogOf, chatOf, settingsFor } from "../../../support/routing.ts";

const catalog = catalogOf(
  settingsFor({
    small: { context_tokens: 1_000 },
    middle: { context_tokens: 5_000 },
    large: { context_tokens: 100_000 },
    unknown: {},
  }),
);
const models = (...names: string[]) => names.map((name) => catalog.models.get(name)!);
const names = (list: readonly Model[]) => list.map(({ name }) => name);
/** A prompt of about so many tokens. */
const prompt = (tokens: number, over: object = {}) =>
  chatOf({ messages: [{ role: "user", content: "four".repeat(tokens) }], ...over });

describe("candidates with room", () => {
  const all = models("small", "middle", "large", "unknown");

  it("are all for a short prompt", () => {
    assert.deepEqual(withRoom(all, prompt(10)), all);
  });

  it("are those that hold three quarters of the estimate, and those of unknown size", () => {
    assert.deepEqual(names(withRoom(all, prompt(1_300))), ["small", "middle", "large", "unknown"]);
    assert.deepEqual(names(withRoom(all, prompt(1_400))), ["middle", "large", "unknown"]);
  });

  it("must also hold the reply that was asked for", () => {
    const chat = prompt(1_000, { max_tokens: 4_500 });
    assert.deepEqual(names(withRoom(all, chat)), ["large", "unknown"]);
  });

  it("are all if none seems to have room, or if there is only one", () => {
    const tight = models("small", "middle");
    assert.deepEqual(withRoom(tight, prompt(50_000)), tight);
    const single = models("small");
    assert.deepEqual(withRoom(single, prompt(50_000)), single);
  });
});
