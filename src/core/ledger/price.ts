// Money, exactly: whole pico-units of the currency as BigInt, never rounded, printed as a decimal
// string. A price of 1 per million tokens is 1e6 pico-units for each token. DESIGN.md "Files",
// WIRE.md 8.
import type { Usage } from "../openai/usage.ts";

/** What a model costs, in the currency per million tokens, with at most six decimals. */
export interface Price {
  /** Prompt tokens from the provider's cache. Absent: as much as input_cache_miss. */
  readonly input_cache_hit?: number | undefined;
  /** All other prompt tokens. */
  readonly input_cache_miss: number;
  /** Completion tokens, reasoning included. */
  readonly output: number;
}

const DECIMALS = 12;
/** What formatMoney writes. */
export const AMOUNT = /^(\d+)(?:\.(\d{1,12}))?$/;
/** A price has at most six decimals, so the product is whole. */
const pico = (tokens: number, price: number): bigint =>
  BigInt(tokens) * BigInt(Math.round(price * 1e6));

/**
 * The cost in pico-units. Reasoning tokens are a part of completion_tokens, so they are paid for
 * already.
 */
export function costOf(usage: Usage, price: Price | undefined): bigint {
  if (!price) return 0n;
  const { input_cache_miss: miss, input_cache_hit: hit = miss, output } = price;
  return (
    pico(usage.prompt_cache_hit_tokens, hit) +
    pico(usage.prompt_cache_miss_tokens, miss) +
    pico(usage.completion_tokens, output)
  );
}

/** `"0.00042"`: all digits, no zeros at the end. */
export function formatMoney(pico: bigint): string {
  const digits = String(pico).padStart(DECIMALS + 1, "0");
  return `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`.replace(/\.?0+$/, "");
}

/**
 * The reverse of formatMoney. Throws a SyntaxError for a text that formatMoney cannot have written.
 */
export function parseMoney(text: string): bigint {
  const [, units = "", decimals = ""] = AMOUNT.exec(text) ?? [];
  if (units === "")
    throw new SyntaxError(`not an amount of money: ${JSON.stringify(text.slice(0, 40))}`);
  return BigInt(units + decimals.padEnd(DECIMALS, "0"));
}
