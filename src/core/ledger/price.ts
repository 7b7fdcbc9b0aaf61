// Money, exactly: whole pico-units of the currency (1 per million tokens is 1e6 of them a token) as BigInt, never rounded,
// printed as a decimal string. DESIGN.md "Files", WIRE.md 8.
import type { ModelConfig } from "../config/schema.ts";
import type { Usage } from "../openai/usage.ts";

const DECIMALS = 12;
export const AMOUNT = /^(\d+)(?:\.(\d{1,12}))?$/;
/** Prices are per million and have at most six decimals (config/schema.ts), so that this is whole. */
const pico = (tokens: number, price: number): bigint =>
  BigInt(tokens) * BigInt(Math.round(price * 1e6));

/** In pico-units. Reasoning tokens are inside completion_tokens, and so inside the price already. */
export function costOf(usage: Usage, price: ModelConfig["price"]): bigint {
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

/** The other way; throws a SyntaxError for what `formatMoney` cannot have written. */
export function parseMoney(text: string): bigint {
  const [, units = "", decimals = ""] = AMOUNT.exec(text) ?? [];
  if (units === "")
    throw new SyntaxError(`not an amount of money: ${JSON.stringify(text.slice(0, 40))}`);
  return BigInt(units + decimals.padEnd(DECIMALS, "0"));
}
