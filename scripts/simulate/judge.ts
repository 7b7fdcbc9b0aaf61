// Judges a run: the reconciliation of the books with what clients and provider saw, and what else
// the log shows of limits and budgets.

import type { Entry } from "../reconcile/books.ts";
import type { Disturbance, Evidence } from "../reconcile/evidence.ts";
import { createFindings, type Findings, judgeBills } from "../reconcile/judge.ts";
import { pico } from "../reconcile/money.ts";
import { CAPPED } from "../reconcile/plan.ts";
import { LIMITED_RPM } from "./installation.ts";

const WINDOW_MS = 60_000;
/** From the admission of a request until it is opened. */
const SLACK_MS = 1_000;

export function judge(evidence: Evidence): readonly string[] {
  const findings = createFindings("books");
  if (evidence.gateways.length > 1 && mayOverspend(evidence.disturbances))
    evidence.cappedBudget = undefined;
  const { entries } = judgeBills(evidence, findings);
  judgeLimits(evidence, entries, findings);
  judgeHolds(evidence, entries, findings);
  return findings.violations;
}

/** With an outage before it and after it, a gateway that stands still for so long counts as dead. */
const LONG_FREEZE_MS = 5_000;
/** After so long all gateways have written again what Redis has lost. */
const RESTORED_MS = 20_000;

/**
 * Whether gateways that share a budget may overspend it, by the manual's page "budgets": one of them
 * counted as dead, or it began while the rows of the others were lost.
 */
function mayOverspend(disturbances: readonly Disturbance[]): boolean {
  const starts = disturbances.filter(({ kind }) => /^(kill|stop|power)$/.test(kind));
  return disturbances.some(({ kind, from, until }) => {
    if (kind === "freeze") return until - from > LONG_FREEZE_MS;
    const isMeanwhile = ({ from: at }: Disturbance): boolean =>
      at > from - SLACK_MS && at < until + RESTORED_MS;
    return kind === "store lost" && starts.some(isMeanwhile);
  });
}

/** In any minute at most so many requests of the limited account were admitted. */
function judgeLimits(evidence: Evidence, entries: readonly Entry[], findings: Findings): void {
  const times = entries
    .filter(({ open }) => open["account"] === "limited")
    .map(({ open }) => Date.parse(open["time"]))
    .sort((one, other) => one - other);
  const hasRedis = evidence.gateways.length > 1;
  // A gateway that begins remembers nothing, but Redis does.
  const forgetting = hasRedis ? /^store lost$/ : /^(kill|stop)$/;
  const ends = evidence.disturbances.filter(({ kind }) => forgetting.test(kind));
  // Between the answer of Redis and the open line a gateway may have stood still.
  const freezes = hasRedis ? evidence.disturbances.filter(({ kind }) => kind === "freeze") : [];
  for (const [index, time] of times.entries()) {
    const last = times[index + LIMITED_RPM];
    if (last === undefined) break;
    const isMeanwhile = ({ from, until }: Disturbance) => until >= time - 100 && from <= last;
    const frozenMs = freezes.filter(isMeanwhile).map(({ from, until }) => until - from);
    const least = WINDOW_MS - SLACK_MS - Math.max(0, ...frozenMs);
    findings.check(
      last - time > least || ends.some(isMeanwhile),
      () => `${LIMITED_RPM + 1} requests of the limited account within ${last - time} ms`,
    );
  }
}

/**
 * What a purse has spent and what its requests hold was never more than its budget: after each open
 * line, by the order of the log. A run over midnight has two budgets, and is left out.
 */
function judgeHolds(evidence: Evidence, entries: readonly Entry[], findings: Findings): void {
  const own = entries.filter(({ open }) => open["account"] === CAPPED);
  const lines = own
    .flatMap(({ open, settle }) => {
      const hold = pico(open["hold"] ?? "0");
      return [
        { time: open["time"], change: hold, isOpen: true },
        { time: settle["time"], change: pico(settle["cost"]) - hold, isOpen: false },
      ];
    })
    // Within a millisecond a settled request comes first.
    .sort((a, b) => (a.time < b.time || (a.time === b.time && !a.isOpen) ? -1 : 1));
  const days = new Set(lines.map(({ time }) => time.slice(0, 10)));
  // A process that died held nothing any more; its requests are settled later.
  const { cappedBudget, disturbances } = evidence;
  if (days.size > 1 || disturbances.some(({ kind }) => kind.startsWith("kill"))) return;
  if (cappedBudget === undefined) return;
  let used = 0n;
  for (const { change, isOpen, time } of lines) {
    used += change;
    findings.check(
      !isOpen || used <= pico(cappedBudget),
      () => `at ${time} ${used} pico-units of the budget are spent or held, of ${cappedBudget}`,
    );
  }
}
