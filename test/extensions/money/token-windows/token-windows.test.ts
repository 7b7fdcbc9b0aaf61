// The sliding window of tokens against a naive count.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createTokenWindows,
  type Admission,
} from "../../../../src/extensions/money/token-windows/index.ts";
import { createRandom } from "../../../support/random.ts";

const MINUTE = 60_000;

const limitOf = (limit: number) => [{ name: "account a", limit }];
const WIDE = limitOf(1_000_000);

describe("a window of tokens", () => {
  it("counts as a list of all admissions does, also when they are corrected", () => {
    const seed = 20_261_122;
    console.log(`seed ${seed}`);
    const { between } = createRandom(seed);
    let time = 0;
    const windows = createTokenWindows(() => time);
    const all: { time: number; tokens: number; admission?: Admission | undefined }[] = [];
    for (let round = 0; round < 3_000; round += 1) {
      time += between(0, 900);
      const count = (at = time) =>
        all.reduce((sum, each) => sum + (each.time + MINUTE > at ? each.tokens : 0), 0);
      assert.equal(1_000_000 - windows.state(WIDE)!.remaining, count());
      const wanted = between(1, 400);
      const limit = between(1_000, 30_000);
      if (count() + wanted <= limit) {
        assert.equal(windows.roomIn(limitOf(limit), wanted), 0);
        all.push({ time, tokens: wanted, admission: windows.admit(WIDE, wanted) });
      } else {
        const wait = windows.roomIn(limitOf(limit), wanted);
        assert.ok(count(time + wait) + wanted <= limit, "there is room after the wait");
        assert.ok(count(time + wait - 1) + wanted > limit, "and none before");
      }
      const earlier = all[between(0, all.length)];
      if (!earlier?.admission || between(0, 2) === 0) continue;
      earlier.tokens = between(0, 500);
      windows.correct(WIDE, earlier.admission, earlier.tokens);
      earlier.admission = undefined;
    }
    assert.ok(all.length > 500);
    assert.ok(windows.state(WIDE)!.resetMs > 0);
    time += MINUTE;
    assert.equal(windows.state(WIDE)!.resetMs, 0);
    assert.equal(windows.roomIn(limitOf(10), 11), MINUTE, "larger than the limit alone");
  });
});
