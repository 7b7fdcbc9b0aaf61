// Judges a run: reconciles the books with what clients and provider recorded, as scripts/reconcile
// does, and checks in the log that limits and budgets were kept.

import type { Entry } from "../reconcile/books.ts";
import type { Disturbance, Evidence } from "../reconcile/evidence.ts";
import { createFindings, type Findings, judgeBills } from "../reconcile/judge.ts";
import { pico } from "../reconcile/money.ts";
import { CAPPED } from "../reconcile/plan.ts";
import { LIMITED_RPM } from "./installation.ts";

const WINDOW_MS = 60_000;
/** The longest time from the admission of a request to its open line. */
const SLACK_MS = 1_000;

/** The violations in the evidence about a run. */
export function judge(evidence: Evidence): readonly string[] {
  const findings = createFindings("books");
  if (evidence.gateways.length > 1 && mayOverspend(evidence.disturbances))
    evidence.cappedBudget = undefined;
  const { entries } = judgeBills(evidence, findings);
  judgeLimits(evidence, entries, findings);
  judgeHolds(evidence, entries, findings);
  return findings.violations;
}

/** A gateway that is suspended for longer, between two outages of Redis, counts as dead. */
const LONG_FREEZE_MS = 5_000;
/** After this time all gateways have written again what Redis lost. */
const RESTORED_MS = 20_000;

/**
 * Whether gateways that share a budget may overspend it, as the manual's page "budgets" says: one
 * of them counted as dead, or one started while the rows of the others were lost.
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

/** In any minute at most LIMITED_RPM requests of the limited account may have been admitted. */
function judgeLimits(evidence: Evidence, entries: readonly Entry[], findings: Findings): void {
  const times = entries
    .filter(({ open }) => open["account"] === "limited")
    .map(({ open }) => Date.parse(open["time"]))
    .sort((one, other) => one - other);
  const hasRedis = evidence.gateways.length > 1;
  // A gateway that starts has an empty window. Redis keeps its windows.
  const forgetting = hasRedis ? /^store lost$/ : /^(kill|stop)$/;
  const ends = evidence.disturbances.filter(({ kind }) => forgetting.test(kind));
  // A gateway may have been suspended between the answer of Redis and the open line.
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
 * After each open line, what the account CAPPED had spent and what its requests held must have been
 * within its budget. Runs over midnight are skipped, because they have two budgets.
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
    // Times are in milliseconds; of two equal ones, that of a settled request counts as the first.
    .sort((a, b) => (a.time < b.time || (a.time === b.time && !a.isOpen) ? -1 : 1));
  const days = new Set(lines.map(({ time }) => time.slice(0, 10)));
  // The requests of a killed process hold nothing, and are settled later.
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
