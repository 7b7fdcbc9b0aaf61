// The meter: which provider figures count, and what an estimate takes from them; and what the
// client sees of a provider's counts and log probabilities. Then money, checked against independent
// rational numbers of BigInts: costs are exact, nothing is rounded, printed amounts parse back to
// the same value, and sums of printed amounts are exact.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { estimatePrompt, Meter } from "../../../src/core/ledger/meter.ts";
import { type Part, tokenLogprob } from "../../../src/core/openai/parts.ts";
import { chatRequest } from "../../../src/core/openai/request.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";
import { costOf, formatMoney, type Price } from "../../../src/core/ledger/price.ts";
import { parseMoney } from "../../../src/extensions/money/records/index.ts";
import { decimal } from "../../support/books.ts";
import { createRandom } from "../../support/random.ts";

const chatOf = (content: unknown) =>
  chatRequest({ model: "m", messages: [{ role: "user", content }] }, true);
const text = (length: number): Part => ({ type: "text", text: "x".repeat(length) });
const thinking = (length: number): Part => ({ type: "reasoning", text: "x".repeat(length) });
const usage = (
  prompt: number | undefined,
  completion: number | undefined,
  { cacheHit = 0, reasoning = 0, cacheWrite = 0 } = {},
): Part => ({ type: "usage", usage: { prompt, completion, cacheHit, reasoning, cacheWrite } });
const finish: Part = { type: "finish", reason: "stop" };

/** Prompt, completion and source after these parts. The prompt alone is estimated at 2. */
function metered(parts: readonly Part[]) {
  const meter = new Meter(chatOf("12345678"), () => 0);
  for (const part of parts) meter.observe(part);
  const { usage, source } = meter.usage();
  return [usage.prompt_tokens, usage.completion_tokens, source];
}

describe("the meter", () => {
  const STATED = [9, 7, "provider"];
  const ESTIMATED = [2, 10, "estimated"];
  const stated = usage(9, 7);
  const CASES: [name: string, parts: readonly Part[], expected: (number | string)[]][] = [
    ["nothing came", [], [0, 0, "none"]],
    ["a text without figures", [text(40), finish], ESTIMATED],
    ["a figure after the last text", [text(40), stated, finish], STATED],
    ["a figure before the text, cut", [usage(9, 1), text(400)], [9, 100, "estimated"]],
    ["an early figure, finished", [text(4), usage(9, 1), text(400), finish], [9, 101, "estimated"]],
    ["an early figure above the estimate", [usage(9, 70), text(40), finish], [9, 70, "estimated"]],
    ["a completion count alone", [text(40), usage(undefined, 7), finish], [2, 7, "estimated"]],
    ["the two counts apart", [usage(9, undefined), text(40), usage(undefined, 7)], STATED],
    ["a later prompt alone", [usage(9, 3), text(40), usage(8, undefined)], [8, 10, "estimated"]],
    ["a later prompt of 0", [usage(9, 1), text(40), usage(0, 7), finish], STATED],
    ["0 tokens although there is text", [text(1), usage(9, 0), finish], [9, 1, "estimated"]],
    ["0 tokens without any output", [usage(9, 0), finish], [9, 0, "provider"]],
    ["zeros", [text(40), usage(0, 0), finish], ESTIMATED],
    ["a figure beyond 10^9", [text(40), usage(1_000_000_001, 0)], ESTIMATED],
    ["a sum beyond 10^9", [text(40), usage(999_999_999, 2)], ESTIMATED],
    ["cache writes beyond 10^9", [text(40), usage(9, 7, { cacheWrite: 1e300 })], ESTIMATED],
    ["a cached count beyond 10^9", [text(40), usage(9, 7, { cacheHit: 1e300 })], ESTIMATED],
    ["thinking beyond 10^9", [text(40), usage(9, 7, { reasoning: 1e12 })], ESTIMATED],
    ["a good figure, then an absurd one", [text(40), stated, usage(1e10, 1)], STATED],
    ["thinking, shown or not", [thinking(40), text(40), finish], [2, 20, "estimated"]],
    [
      "thinking counted without the text",
      [text(40), usage(9, undefined, { reasoning: 30 })],
      [9, 40, "estimated"],
    ],
  ];
  for (const [name, parts, expected] of CASES)
    it(`${name}: ${expected.join(", ")}`, () => assert.deepEqual(metered(parts), expected));

  it("uses the provider's figures if they cover everything received", () => {
    const meter = new Meter(chatOf("hi"), () => 0);
    const seen = [text(4), usage(9, 7), finish, text(4), usage(9, 9)].map((part) => {
      meter.observe(part);
      return meter.finishReason() !== null && meter.usage().source === "provider";
    });
    assert.deepEqual(seen, [false, false, true, false, true]);
  });
});

it("estimates tools, earlier calls and their results, and the output with thinking and calls", () => {
  const called = { name: "look", arguments: '{"at":"sky"}' };
  const tools = [{ type: "function", function: { name: "look" } }];
  const messages = [
    { role: "user", content: "12345678" },
    { role: "assistant", tool_calls: [{ id: "c1", type: "function", function: called }] },
    { role: "tool", tool_call_id: "c1", content: "blue" },
    { role: "user", content: [{ type: "text", text: "1234" }] },
  ];
  const meter = new Meter(chatRequest({ model: "m", messages, tools }, true), () => 0);
  const call: Part = { type: "tool_call", call: 0, id: "c2", name: "look" };
  const args: Part = { type: "tool_arguments", call: 0, text: called.arguments };
  for (const part of [text(8), thinking(4), call, args, finish]) meter.observe(part);
  const { usage, source } = meter.usage();
  const prompt = Math.ceil((8 + 4 + 12 + 4 + 4 + JSON.stringify(tools).length) / 4);
  assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [prompt, (8 + 4 + 4 + 12) / 4]);
  assert.equal(usage.completion_tokens_details.reasoning_tokens, 1);
  assert.equal(source, "estimated");
});

it("adds media tokens to the estimated prompt, which stays a valid token count", () => {
  assert.equal(
    estimatePrompt(chatOf("12345678"), () => 24),
    2 + 24,
  );
  assert.equal(
    estimatePrompt(chatOf("1"), () => 1e12),
    500_000_000,
  );
});

it("counts cache writes among the cache misses, and states them only if there were some", () => {
  const counts = { prompt: 10, completion: 5, cacheHit: 4, reasoning: 0 };
  const details = (written: object) => makeUsage({ ...counts, ...written }).prompt_tokens_details;
  assert.deepEqual(details({ cacheWrite: 5, cacheWrite1h: 2 }), {
    cached_tokens: 4,
    cache_write_tokens: 5,
    cache_write_1h_tokens: 2,
  });
  assert.deepEqual(details({ cacheWrite: 6 }), { cached_tokens: 4, cache_write_tokens: 6 });
  assert.deepEqual(details({ cacheWrite: 0, cacheWrite1h: 2 }), { cached_tokens: 4 });
  assert.deepEqual(
    details({ cacheWrite: 9, cacheWrite1h: 9 }),
    { cached_tokens: 4, cache_write_tokens: 6, cache_write_1h_tokens: 6 },
    "at most the misses",
  );
});

it("keeps the details of log probabilities, and fills in missing or invalid ones", () => {
  const token = { token: "a", logprob: -0.5, bytes: [97] };
  const stated = { ...token, top_logprobs: [token, { ...token, logprob: -2 }] };
  assert.deepEqual(tokenLogprob(stated), stated);
  const empty = { token: "", logprob: -9999, bytes: null };
  for (const json of [undefined, null, 7, { token: 1, logprob: NaN, bytes: "x" }])
    assert.deepEqual(tokenLogprob(json), { ...empty, top_logprobs: [] });
  const { bytes } = tokenLogprob({ bytes: [1, -1, "x", 2] });
  assert.deepEqual(bytes, [1, 0, 0, 2]);
});

/** Pico-units of one unit of the currency. */
const PICO = 10n ** 12n;

/** A fraction [numerator, denominator], never reduced. */
type Rational = readonly [bigint, bigint];
const plus = ([a, b]: Rational, [c, d]: Rational): Rational => [a * d + c * b, b * d];
const same = ([a, b]: Rational, [c, d]: Rational) => a * d === c * b;

/** A price as an operator writes it, and as the fraction of its digits. */
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

/** A price of five figures, some of them absent, and the figure that applies for each. */
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
  it(`costs equal exact fractions, and print and add up exactly (seed ${seed}${seed === fresh ? ", new in each run" : ""})`, () => {
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
  it(`${JSON.stringify(text)} is not an amount of money`, () =>
    assert.throws(() => parseMoney(text), SyntaxError));
