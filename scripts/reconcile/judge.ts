// Judges the evidence about one phase. Each entry of the spend log must belong to one request of a
// client, and each request that reached the provider or got a reply must have one entry.

import { isDeepStrictEqual } from "node:util";
import { counted } from "../bench/table.ts";
import { type Entry, judgeRecords, readEntries } from "./books.ts";
import type { Evidence } from "./evidence.ts";
import * as outputs from "./judge-outputs.ts";
import { caseOf, judgeEntry, judgeHandling, type Match } from "./judge-request.ts";
import { amountOf, sum } from "./money.ts";

/** Counts comparisons, and collects violations. */
export type Findings = ReturnType<typeof createFindings>;

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? `${member} pico` : member)) ??
  "undefined";

/** Shows where two texts begin to differ. */
function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 80);
  return `${one.slice(from, at + 160)}, not ${other.slice(from, at + 160)}`;
}

/** `prefix`: begins each violation. */
export function createFindings(prefix: string) {
  const violations: string[] = [];
  let comparisons = 0;
  /** Counts one comparison. `violation` is only called if it fails. */
  function check(isRight: boolean, violation: () => string): void {
    comparisons += 1;
    if (!isRight) violations.push(`${prefix}: ${violation()}`);
  }
  /** Compares two JSON values, which may contain BigInts. */
  function equal(actual: unknown, expected: unknown, what: string): void {
    const isEqual = isDeepStrictEqual(actual, expected);
    check(isEqual, () => `${what}: ${difference(textOf(actual), textOf(expected))}`);
  }
  return { check, equal, comparisons: () => comparisons, violations };
}

/** What the parts of the judge work on. */
export type JudgedPhase = ReturnType<typeof judgeBills>;

/** Finds the request of each entry, and judges both. */
function matchAll(evidence: Evidence, entries: readonly Entry[], findings: Findings): Match[] {
  const cases = new Map(
    evidence.requests.map((request) => [request.id, caseOf(evidence, request, findings)]),
  );
  const recorded = new Set<string>();
  const matches = entries.flatMap((entry) => {
    const { gateway_request_id: id, spend_id } = entry.open;
    const about = cases.get(id);
    const isFirst = about !== undefined && !recorded.has(id);
    findings.check(isFirst, () => `${spend_id} is of no request that was sent, or its second`);
    if (!isFirst) return [];
    recorded.add(id);
    return [judgeEntry(about, entry)];
  });
  for (const [id, about] of cases) judgeHandling(about, recorded.has(id));
  return matches;
}

/** Judges the log, the records and the bills. */
export function judgeBills(evidence: Evidence, findings: Findings) {
  for (const complaint of evidence.complaints) findings.check(false, () => complaint);
  const entries = readEntries(evidence, findings);
  /** The entries whose requests are known. */
  const matches = matchAll(evidence, entries, findings);
  const phase = { evidence, findings, entries, matches };
  judgeRecords(phase);
  outputs.judgeStatements(phase);
  if (!evidence.isReference) {
    outputs.judgeAudits(phase);
    outputs.judgeBudgets(phase);
  }
  return phase;
}

/** The result of judging a phase. */
export type Judgement = ReturnType<typeof judge>;

/** Judges all evidence about a phase. */
export function judge(evidence: Evidence) {
  const findings = createFindings(evidence.phase);
  const phase = judgeBills(evidence, findings);
  outputs.judgeSeals(phase);
  outputs.judgeReceipts(phase);
  const { comparisons, violations } = findings;
  return { matches: phase.matches, comparisons: comparisons(), violations };
}

/** The figures that a run prints at its end. */
export function reportOf(phases: readonly Evidence[], judgements: readonly Judgement[]): string[] {
  const requests = phases.flatMap((evidence) => evidence.requests);
  const calls = phases.flatMap((evidence) => [...evidence.calls.values()].flat());
  const disturbances = phases.flatMap(({ disturbances }) => disturbances.map(({ kind }) => kind));
  const matches = judgements.flatMap((judgement) => judgement.matches);
  const billed = (name: string): string => {
    const costs = matches.filter(({ basis }) => basis === name).map(({ cost }) => cost);
    return `  ${name}: ${costs.length} records, ${amountOf(sum(costs))} USD`;
  };
  return [
    `requests: ${requests.length}: ${counted(requests.map(({ outcome, api }) => `${outcome} (${api})`))}`,
    `calls at the provider: ${calls.length}: ${counted(calls.map(({ behaviour }) => behaviour))}`,
    `what happened: ${counted(disturbances)}`,
    `records: ${matches.length}: ${counted(matches.map(({ entry }) => entry.settle["status"]))}`,
    "billed by the figures of the provider, by an exact estimate, by one within bounds, nothing:",
    ...["provider", "estimated", "bounded", "none"].map(billed),
    `comparisons: ${judgements.reduce((total, { comparisons }) => total + comparisons, 0)}`,
  ];
}
