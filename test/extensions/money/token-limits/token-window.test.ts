// The sliding window of tokens against a naive count.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createTokenWindow } from "../../../../src/extensions/money/token-limits/token-window.ts";
import { createRandom } from "../../../support/random.ts";

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
    assert.ok(window.renewsIn(time) > 0);
    assert.equal(window.renewsIn(time + MINUTE), 0);
  });

  it("has no room for what is larger than the limit alone", () => {
    const window = createTokenWindow();
    assert.equal(window.roomIn(11, 10, 0), MINUTE);
  });
});
