// Whose requests are refused or fail, and why: the first question of an operator.
import { periodText, type Counts } from "./rates.ts";

/** Pairs of an account and a code that a line names. */
const MOST_NAMED = 5;

export interface Refusal {
  /** Empty: there was no valid key. */
  readonly account: string;
  /** The error code that the client got. */
  readonly code: string;
  /** How often. At least 1. */
  readonly count: number;
}

/** The commonest first. None if the gateway does not count them. */
export const refusalsIn = (counts: Counts): readonly Refusal[] =>
  counts
    .grown("chat_gateway_refusals_total")
    .map(({ labels: { account = "", code = "" }, value }) => ({ account, code, count: value }))
    .filter(({ count }) => count > 0)
    .sort((one, other) => other.count - one.count);

/** A line for people. */
export function refusalsLine(counts: Counts): string {
  const refusals = refusalsIn(counts);
  const period = periodText(counts);
  if (refusals.length === 0) return `refused or failed ${period}: none`;
  const named = refusals
    .slice(0, MOST_NAMED)
    .map(({ account, code, count }) => `${account || "no valid key"} ${count} (${code})`);
  const others = refusals.length - named.length;
  const more = others > 0 ? [`${others} more in /metrics`] : [];
  return `refused or failed ${period}: ${[...named, ...more].join(", ")}`;
}
