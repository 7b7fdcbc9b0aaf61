// Money, exactly: whole pico-units of the currency as BigInt, never rounded, printed as a decimal
// string. A price of 1 per million tokens is 1e6 pico-units for each token. wire.md "Prices".
import type { Usage } from "../openai/usage.ts";

/** The price of a model, in the currency per million tokens, with at most six decimals. */
export interface Price {
  /** Prompt tokens from the provider's cache. Absent: as much as input_cache_miss. */
  readonly input_cache_hit?: number | undefined;
  /** All other prompt tokens. */
  readonly input_cache_miss: number;
  /** Prompt tokens that the provider wrote to its cache. Absent: as much as input_cache_miss. */
  readonly input_cache_write?: number | undefined;
  /** Prompt tokens that it keeps there for an hour. Absent: as much as input_cache_write. */
  readonly input_cache_write_1h?: number | undefined;
  /** Completion tokens, reasoning included. */
  readonly output: number;
}

/** Decimals of an amount: those of a pico-unit. */
export const DECIMALS = 12;
/** The cost of `tokens`, in pico-units. A price has at most six decimals, so the cost is whole. */
export const picoOf = (tokens: number, price: number): bigint =>
  BigInt(tokens) * BigInt(Math.round(price * 1e6));

/**
 * The cost in pico-units. Reasoning tokens are a part of completion_tokens, so they are paid for
 * already.
 */
export function costOf(usage: Usage, price: Price | undefined): bigint {
  if (!price) return 0n;
  const { input_cache_miss: miss, input_cache_hit: hit = miss, output } = price;
  const { input_cache_write: write = miss, input_cache_write_1h: write1h = write } = price;
  const cached = usage.prompt_tokens_details;
  const { cache_write_tokens: written = 0, cache_write_1h_tokens: written1h = 0 } = cached;
  return (
    picoOf(usage.prompt_cache_hit_tokens, hit) +
    picoOf(usage.prompt_cache_miss_tokens - written, miss) +
    picoOf(written - written1h, write) +
    picoOf(written1h, write1h) +
    picoOf(usage.completion_tokens, output)
  );
}

/** `"0.00042"`: all digits, no zeros at the end. */
export function formatMoney(pico: bigint): string {
  const digits = String(pico).padStart(DECIMALS + 1, "0");
  return `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)}`.replace(/\.?0+$/, "");
}
