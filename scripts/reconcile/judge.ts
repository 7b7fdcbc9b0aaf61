// Judges one phase: everything that was collected against the provider's ledger. Each entry of the
// spend log must be that of one request, and each request that reached the provider or got an answer
// must have one.

import { isDeepStrictEqual } from "node:util";
import { type Entry, judgeRecords, readEntries } from "./books.ts";
import type { Asked } from "./client.ts";
import type { House } from "./house.ts";
import { amountOf, sum } from "./money.ts";
import { judgeEntry, type Match, nameOf, wasDisturbed } from "./rule.ts";
import {
  judgeAudits,
  judgeBudgets,
  judgeReceipts,
  judgeSeals,
  judgeStatements,
} from "./answers.ts";

/** What was compared, and what was not as it must be. */
export type Findings = ReturnType<typeof createFindings>;

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (typeof member === "bigint" ? `${member} pico` : member)) ??
  "undefined";

/** Two texts from a little before the place where they begin to differ. */
function difference(one: string, other: string): string {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const from = Math.max(0, at - 80);
  return `${one.slice(from, at + 160)}, not ${other.slice(from, at + 160)}`;
}

export function createFindings(prefix: string) {
  const violations: string[] = [];
  let comparisons = 0;
  /** One comparison. `violation` says what is wrong, and is asked for only then. */
  function check(right: boolean, violation: () => string): void {
    comparisons += 1;
    if (!right) violations.push(`${prefix}: ${violation()}`);
  }
  /** Compares two values of JSON; amounts may be BigInts. */
  function equal(actual: unknown, expected: unknown, what: string): void {
    const isRight = isDeepStrictEqual(actual, expected);
    check(isRight, () => `${what}: ${difference(textOf(actual), textOf(expected))}`);
  }
  return { check, equal, comparisons: () => comparisons, violations };
}

/** Refusals by the gateway itself, before anything is opened. */
const REFUSALS = ["insufficient_balance", "rate_limit_exceeded", "server_overloaded"];

/** An error of the Messages API has no code, so that only its status tells. */
const REFUSING = [402, 429, 503, 529];

function isRefused(house: House, asked: Asked): boolean {
  const isCalled = house.calls.has(asked.serial);
  if (asked.verdict !== "error") return false;
  // A gateway that stops ends what takes too long.
  if (isCalled && wasDisturbed(house, "stop", asked)) return false;
  return asked.code === undefined
    ? REFUSING.includes(asked.status) && !isCalled
    : REFUSALS.includes(asked.code);
}

/** Each request for itself: refused ones cost nobody anything, and only kills cut. */
function judgeRequest(house: House, asked: Asked, isRecorded: boolean, findings: Findings): void {
  const { serial, verdict, code, foreign, status } = asked;
  const name = nameOf(asked);
  const isCalled = house.calls.has(serial);
  const refused = isRefused(house, asked);
  const isAnswered = verdict === "whole" || (verdict === "error" && !refused);
  findings.check(
    isRecorded || !(isCalled || isAnswered) || wasDisturbed(house, "power", asked),
    () => `${name} has no record`,
  );
  findings.check(
    !refused || !isCalled,
    () => `${name} was refused with ${code}, and the provider was called`,
  );
  findings.check(verdict !== "hung", () => `${name} got no answer`);
  findings.equal(foreign, undefined, `${name} has something of another request`);
  // It may have been on its way to a gateway that was closing its idle connections.
  const isTooLate = status === 0 && !isCalled && wasDisturbed(house, "stop", asked);
  const isCut = verdict === "cut" && !isTooLate && !wasDisturbed(house, "kill", asked);
  findings.check(!isCut, () => `${name} was cut by no kill`);
}

function matchAll(house: House, entries: readonly Entry[], findings: Findings): Match[] {
  const requests = new Map(house.asked.map((asked) => [asked.id, asked]));
  const recorded = new Set<Asked>();
  const matches = entries.flatMap((entry) => {
    const { gateway_request_id: id, spend_id } = entry.open;
    const asked = requests.get(id);
    const isRight = asked !== undefined && !recorded.has(asked);
    findings.check(isRight, () => `${spend_id} is of no request that was sent, or its second`);
    if (!isRight) return [];
    recorded.add(asked);
    return [judgeEntry(house, entry, asked, findings)];
  });
  for (const asked of house.asked) judgeRequest(house, asked, recorded.has(asked), findings);
  return matches;
}

/** The log, the records and the bills against what the clients and the provider saw. */
export function judgeBills(house: House, findings: Findings) {
  for (const complaint of house.complaints) findings.check(false, () => complaint);
  const entries = readEntries(house, findings);
  const matches = matchAll(house, entries, findings);
  judgeRecords(house, entries, findings);
  judgeStatements(house, matches, findings);
  if (!house.isReference) {
    judgeAudits(house, matches, findings);
    judgeBudgets(house, matches, findings);
  }
  return { entries, matches };
}

export type Judgement = ReturnType<typeof judge>;

export function judge(house: House) {
  const findings = createFindings(house.phase);
  const { entries, matches } = judgeBills(house, findings);
  judgeSeals(house, entries, findings);
  judgeReceipts(house, entries, findings);
  return { matches, comparisons: findings.comparisons(), violations: findings.violations };
}

/** How many there are of each name, the most frequent first. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

/** The figures of a run, as it prints them at its end. */
export function reportOf(houses: readonly House[], judgements: readonly Judgement[]): string[] {
  const asked = houses.flatMap((house) => house.asked);
  const calls = houses.flatMap((house) => [...house.calls.values()].flat());
  const kills = houses.flatMap(({ disturbances }) => disturbances.map(({ kind }) => kind));
  const matches = judgements.flatMap((judgement) => judgement.matches);
  const billed = (name: string): string => {
    const costs = matches.filter(({ basis }) => basis === name).map(({ cost }) => cost);
    return `  ${name}: ${costs.length} records, ${amountOf(sum(costs))} USD`;
  };
  return [
    `requests: ${asked.length}: ${counted(asked.map(({ verdict, api }) => `${verdict} (${api})`))}`,
    `calls at the provider: ${calls.length}: ${counted(calls.map(({ behaviour }) => behaviour))}`,
    `what happened: ${counted(kills)}`,
    `records: ${matches.length}: ${counted(matches.map(({ entry }) => entry.settle["status"]))}`,
    "billed by the figures of the provider, by an exact estimate, by one within bounds, nothing:",
    ...["provider", "estimated", "bounded", "none"].map(billed),
    `comparisons: ${judgements.reduce((total, { comparisons }) => total + comparisons, 0)}`,
  ];
}
