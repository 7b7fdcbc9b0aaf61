// Money, against rational numbers of BigInts that know nothing of how the gateway reckons: costs
// are exact, nothing is rounded, what is printed reads back as what it was, and sums of what was
// printed are the sums.

import assert from "node:assert/strict";
import { it } from "node:test";
import { costOf, formatMoney, type Price } from "../../../src/core/ledger/price.ts";
import { parseMoney } from "../../../src/extensions/money/records/index.ts";
import { decimal } from "../../support/books.ts";
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

const fresh = (Date.now() ^ process.pid) | 0;
for (const seed of [1, 2, 3, 4, fresh]) {
  it(`costs are what exact fractions say, and print and add up exactly (seed ${seed}${seed === fresh ? ", a new one each run" : ""})`, () => {
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

const none = ["", ".", "1.", ".5", "-1", "+1", "1e3", "1,5", " 1", "1 ", "0x1", "NaN", "\u0661"];
for (const text of [...none, "1.0000000000001"])
  it(`an amount of money: ${JSON.stringify(text)} is none`, () =>
    assert.throws(() => parseMoney(text), SyntaxError));
