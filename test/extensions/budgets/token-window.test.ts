// The sliding window of tokens against a naive count, and the bound of the last 100 requests.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRecent } from "../../../src/extensions/budgets/recent.ts";
import { createTokenWindow } from "../../../src/extensions/budgets/token-window.ts";
import { createRandom } from "../../support/random.ts";

const MINUTE = 60_000;

describe("a window of tokens", () => {
  it("counts as a list of all admissions does, also when they are corrected", () => {
    const seed = 20_261_122;
    console.log(`seed ${seed}`);
    const { between } = createRandom(seed);
    const window = createTokenWindow();
    const all: { id: number; time: number; tokens: number }[] = [];
    let time = 0;
    for (let id = 1; id <= 3_000; id += 1) {
      time += between(0, 900);
      const count = () =>
        all.reduce((sum, each) => sum + (each.time + MINUTE > time ? each.tokens : 0), 0);
      assert.equal(window.total(time), count());
      const wanted = between(1, 400);
      const limit = between(1_000, 30_000);
      if (count() + wanted <= limit) {
        window.add(id, time, wanted);
        all.push({ id, time, tokens: wanted });
      } else {
        const wait = window.roomIn(wanted, limit, time);
        const then = (at: number) =>
          all.reduce((sum, each) => sum + (each.time + MINUTE > at ? each.tokens : 0), 0);
        assert.ok(then(time + wait) + wanted <= limit, "there is room after the wait");
        assert.ok(then(time + wait - 1) + wanted > limit, "and none before");
      }
      const earlier = all[between(0, all.length)];
      if (!earlier || between(0, 2) === 0) continue;
      earlier.tokens = between(0, 500);
      window.correct(earlier.id, earlier.tokens);
    }
    assert.ok(all.length > 500);
    assert.equal(window.isEmpty(time), false);
    assert.equal(window.isEmpty(time + MINUTE), true);
    assert.equal(window.renewsIn(time + MINUTE), 0);
  });

  it("has no room for what is larger than the limit alone", () => {
    const window = createTokenWindow();
    assert.equal(window.roomIn(11, 10, 0), MINUTE);
  });
});

describe("the last requests of an account to a model", () => {
  const prompt = { cost: 3n, tokens: 2 };
  const estimate = { model: "m", cost: 1_000n, tokens: 1_000, prompt };

  it("bound an estimate by the dearest of a hundred and a quarter, rounded up", () => {
    const recent = createRecent();
    assert.deepEqual(recent.bound("acme", estimate), { cost: 1_000n, tokens: 1_000 });
    recent.add("acme", "m", { cost: 101n, tokens: 50 });
    assert.deepEqual(recent.bound("acme", estimate), { cost: 127n, tokens: 63 });
    for (let request = 0; request < 99; request += 1)
      recent.add("acme", "m", { cost: 4n, tokens: 4 });
    assert.equal(recent.bound("acme", estimate).cost, 127n);
    recent.add("acme", "m", { cost: 4n, tokens: 4 });
    assert.deepEqual(recent.bound("acme", estimate), { cost: 5n, tokens: 5 });
  });

  it("bound no estimate below what its prompt comes to", () => {
    const recent = createRecent();
    recent.add("acme", "m", { cost: 100n, tokens: 80 });
    const long = { ...estimate, prompt: { cost: 700n, tokens: 600 } };
    assert.deepEqual(recent.bound("acme", long), { cost: 700n, tokens: 600 });
    const dear = { ...estimate, prompt: { cost: 2_000n, tokens: 600 } };
    assert.equal(recent.bound("acme", dear).cost, 1_000n);
  });

  it("say nothing of other accounts and models, and never raise an estimate", () => {
    const recent = createRecent();
    recent.add("acme", "m", { cost: 5_000n, tokens: 5_000 });
    assert.deepEqual(recent.bound("acme", estimate), { cost: 1_000n, tokens: 1_000 });
    recent.add("acme", "m2", { cost: 1n, tokens: 1 });
    assert.equal(recent.bound("beta", estimate).cost, 1_000n);
  });
});
