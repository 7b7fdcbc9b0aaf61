// Money, against rational numbers of BigInts that know nothing of how the gateway reckons: costs
// are exact, nothing is rounded, what is printed reads back as what it was, and sums of what was
// printed are the sums.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { costOf, formatMoney, type Price } from "../../../src/core/ledger/price.ts";
import { parseMoney } from "../../../src/extensions/money/records/index.ts";
import { decimal, fraction } from "../../support/books.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";
import { createRandom } from "../../support/random.ts";

/** Pico-units of one unit of the currency. */
const PICO = 10n ** 12n;

/** A fraction [numerator, denominator], never reduced. */
type Rational = readonly [bigint, bigint];
const plus = ([a, b]: Rational, [c, d]: Rational): Rational => [a * d + c * b, b * d];
const same = ([a, b]: Rational, [c, d]: Rational) => a * d === c * b;

/** A price as an operator writes it, and as the fraction that its digits say. */
function anyPrice(next: () => number): { text: string; value: Rational } {
  const size = [1, 10, 1_000, 1_000_000][Math.floor(next() * 4)]!;
  const digits = Math.floor(next() * 7);
  const whole = String(Math.floor(next() * size));
  const decimals = Array.from({ length: digits }, () => Math.floor(next() * 10)).join("");
  return {
    text: digits > 0 ? `${whole}.${decimals}` : whole,
    value: [BigInt(whole + decimals), 10n ** BigInt(digits)],
  };
}

const anyCount = (next: () => number): number =>
  Math.floor(next() * [2, 100, 10_000, 1_000_000, 1_000_000_001][Math.floor(next() * 5)]!);

/** A price of five figures, some of which may be absent, and the figure that counts for each. */
function anyPrices(next: () => number) {
  const [hit, miss, write, write1h, output] = Array.from({ length: 5 }, () => anyPrice(next));
  const [hasHit, hasWrite, has1h] = [next() < 0.7, next() < 0.7, next() < 0.5];
  const price: Price = {
    input_cache_miss: Number(miss!.text),
    output: Number(output!.text),
    ...(hasHit && { input_cache_hit: Number(hit!.text) }),
    ...(hasWrite && { input_cache_write: Number(write!.text) }),
    ...(has1h && { input_cache_write_1h: Number(write1h!.text) }),
  };
  const forWrite = hasWrite ? write! : miss!;
  const figures = [hasHit ? hit! : miss!, miss!, forWrite, has1h ? write1h! : forWrite, output!];
  return { price, figures };
}

describe("costs", () => {
  const fresh = (Date.now() ^ process.pid) | 0;
  for (const seed of [1, 2, 3, 4, fresh]) {
    it(`are what exact fractions say, and print and add up exactly (seed ${seed}${seed === fresh ? ", a new one each run" : ""})`, () => {
      const next = createRandom(seed).random;
      let total = 0n;
      let exactTotal: Rational = [0n, PICO];
      for (let step = 0; step < 3_000; step += 1) {
        const { price, figures } = anyPrices(next);
        const counts = figures.map(() => anyCount(next));
        const [cached = 0, plain = 0, written = 0, kept = 0, completion = 0] = counts;
        const usage = makeUsage({
          prompt: cached + plain + written + kept,
          completion,
          cacheHit: cached,
          reasoning: anyCount(next),
          cacheWrite: written + kept,
          cacheWrite1h: kept,
        });
        const exact = figures
          .map(({ value: [numerator, denominator] }, at): Rational => {
            return [BigInt(counts[at]!) * numerator, denominator * 1_000_000n];
          })
          .reduce(plus);
        const cost = costOf(usage, price);
        const told = `seed ${seed}, step ${step}: ${JSON.stringify({ usage, price })}`;
        assert.ok(same([cost, PICO], exact), `${told}: ${cost}, not ${decimal(...exact)}`);
        const printed = formatMoney(cost);
        assert.equal(printed, decimal(...exact), told);
        assert.equal(parseMoney(printed), cost, told);
        total += parseMoney(printed);
        exactTotal = [exactTotal[0] + (exact[0] * PICO) / exact[1], PICO];
        assert.equal((exact[0] * PICO) % exact[1], 0n, "no fraction of a pico-unit");
      }
      assert.equal(formatMoney(total), decimal(...exactTotal), `seed ${seed}`);
    });
  }

  it("of what was written to a cache are those of a miss where no price says otherwise", () => {
    const counts = { prompt: 100, completion: 7, cacheHit: 20, reasoning: 0 };
    const price = { input_cache_hit: 0.1, input_cache_miss: 1, output: 5 };
    const written = makeUsage({ ...counts, cacheWrite: 50, cacheWrite1h: 30 });
    assert.equal(costOf(written, price), costOf(makeUsage(counts), price));
    const forWrites = { ...price, input_cache_write: 1.25, input_cache_write_1h: 2 };
    // 20 x 0.1 + 30 x 1 + 20 x 1.25 + 30 x 2 + 7 x 5, in millionths
    assert.equal(formatMoney(costOf(written, forWrites)), "0.000152");
    assert.equal(costOf(written, undefined), 0n, "without a price they are nothing");
  });

  it("every price with six decimals around a whole number is taken as it is written", () => {
    const usage = makeUsage({ prompt: 0, completion: 1, cacheHit: 0, reasoning: 0 });
    for (const whole of [0, 1, 7, 99, 1_023, 65_536, 999_999]) {
      for (let decimals = 0; decimals < 1_000_000; decimals += 997) {
        const text = `${whole}.${String(decimals).padStart(6, "0")}`;
        assert.equal(
          costOf(usage, { input_cache_hit: undefined, input_cache_miss: 0, output: Number(text) }),
          BigInt(whole) * 1_000_000n + BigInt(decimals),
          text,
        );
      }
    }
  });
});

describe("amounts", () => {
  const AMOUNTS: [pico: bigint, text: string][] = [
    [0n, "0"],
    [1n, "0.000000000001"],
    [10n, "0.00000000001"],
    [420_000_000n, "0.00042"],
    [10n ** 12n - 1n, "0.999999999999"],
    [10n ** 12n, "1"],
    [100n * 10n ** 12n, "100"],
    [100_500_000_000_000n, "100.5"],
    [10n ** 12n * 10n ** 15n + 1n, "1000000000000000.000000000001"],
  ];
  for (const [pico, text] of AMOUNTS)
    it(`${pico} pico-units are ${text}`, () =>
      assert.deepEqual([formatMoney(pico), parseMoney(text)], [text, pico]));

  it("any amount reads back, and is written without zeros to spare", () => {
    const next = createRandom(5).random;
    for (let step = 0; step < 5_000; step += 1) {
      const pico = BigInt(Math.floor(next() * 2 ** 52)) * 10n ** BigInt(Math.floor(next() * 12));
      const text = formatMoney(pico);
      assert.ok(same(fraction(text), [pico, 10n ** 12n]), text);
      assert.equal(parseMoney(text), pico);
    }
  });

  const none = ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "1 ", "0x1", "NaN", "\u0661"];
  for (const text of [...none, "1.0000000000001"])
    it(`${JSON.stringify(text)} is none`, () => assert.throws(() => parseMoney(text), SyntaxError));
});
