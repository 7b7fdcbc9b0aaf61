// When an overloaded provider may be asked again, in the words of the vendors.
import { retryAfterMs } from "../../../core/providers/provider-error.ts";
import type { RefusalHeaders } from "../../../core/providers/dialect.ts";

/** Limits of OpenAI and of providers that copied its headers. Their resets are durations. */
const OPENAI_LIMITS = ["requests", "tokens"];
/** Limits of Anthropic. Their resets are points in time. */
const ANTHROPIC_LIMITS = ["requests", "tokens", "input-tokens", "output-tokens"];

/**
 * Milliseconds until a refused request may be sent again. `inBody`: a Retry-After that the body
 * states, or "". Undefined: the provider does not say. `now`: the wall clock in milliseconds.
 */
export function statedWait(
  headers: RefusalHeaders,
  inBody: string,
  now: number,
): number | undefined {
  const precise = headers.get("retry-after-ms") ?? "";
  if (/^\d+(\.\d+)?$/.test(precise)) return Number(precise);
  const stated = retryAfterMs(headers.get("retry-after") ?? inBody, now);
  return stated ?? msUntilReset(headers, now);
}

/**
 * Milliseconds until the last exhausted limit is reset. Undefined: no limit is exhausted, or the
 * provider does not say. `now`: as in statedWait.
 */
export function msUntilReset(headers: RefusalHeaders, now: number): number | undefined {
  const openai = OPENAI_LIMITS.filter(
    (name) => headers.get(`x-ratelimit-remaining-${name}`) === "0",
  ).map((name) => durationMs(headers.get(`x-ratelimit-reset-${name}`) ?? ""));
  const anthropic = ANTHROPIC_LIMITS.filter(
    (name) => headers.get(`anthropic-ratelimit-${name}-remaining`) === "0",
  ).map((name) => Date.parse(headers.get(`anthropic-ratelimit-${name}-reset`) ?? "") - now);
  const resets = [...openai, ...anthropic].filter((ms) => ms >= 0);
  return resets.length > 0 ? Math.max(...resets) : undefined;
}

const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/**
 * `6m0s`, `1.5s`, `20ms` in milliseconds; a bare number is in seconds. NaN: it is no duration. A
 * number with more digits is a point in time, which would be a wait of decades.
 */
export function durationMs(text: string): number {
  if (/^\d{1,8}(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^(\d+(\.\d+)?(ms|h|m|s))+$/.test(text)) return Number.NaN;
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g);
  return [...parts].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);
}
