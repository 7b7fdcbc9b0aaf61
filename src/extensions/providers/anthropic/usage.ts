// Anthropic's token counts. wire.md "Anthropic replies".
import type { UsageReport } from "../../../core/openai/usage.ts";
import { asObject, tokenCounter } from "../../../core/schema/untrusted-json.ts";
import { sumOf } from "../turns/index.ts";

/** Other fields are not kept: a provider may send new ones in each event. */
const COUNTS: readonly string[] = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_creation",
  "cache_read_input_tokens",
  "output_tokens",
  "output_tokens_details",
];

/**
 * Reads the usage of each event. Counts are cumulative: a later one replaces an earlier one, unless
 * it is null. An event that does not count the output says nothing of it: the count of
 * message_start is not repeated as if it were the final one.
 */
export function createUsageReader(): (json: unknown) => UsageReport | undefined {
  let usage: Record<string, unknown> = {};
  return (json) => {
    const event = asObject(json);
    const latest = asObject(event["usage"] ?? asObject(event["message"])["usage"]);
    const stated = COUNTS.filter((name) => (latest[name] ?? null) !== null);
    if (stated.length === 0) return undefined;
    usage = { ...usage, ...Object.fromEntries(stated.map((name) => [name, latest[name]])) };
    const count = tokenCounter(usage);
    const cacheHit = count("cache_read_input_tokens");
    const { cacheWrite, cacheWrite1h } = writtenIn(usage);
    return {
      prompt: sumOf(count("input_tokens"), cacheWrite, cacheHit),
      completion: tokenCounter(latest)("output_tokens"),
      cacheHit: cacheHit ?? 0,
      reasoning: tokenCounter(usage["output_tokens_details"])("thinking_tokens") ?? 0,
      ...(cacheWrite ? { cacheWrite, cacheWrite1h } : {}),
    };
  };
}

/**
 * The tokens that were written to the cache: for five minutes and for an hour together, and for an
 * hour alone. The sum is stated by itself; an answer that states only its parts means their sum.
 * Undefined: nothing is stated.
 */
function writtenIn(usage: Record<string, unknown>) {
  const part = tokenCounter(usage["cache_creation"]);
  const cacheWrite1h = part("ephemeral_1h_input_tokens");
  const stated = tokenCounter(usage)("cache_creation_input_tokens");
  const cacheWrite = stated ?? sumOf(part("ephemeral_5m_input_tokens"), cacheWrite1h);
  return { cacheWrite, cacheWrite1h: cacheWrite1h ?? 0 };
}
