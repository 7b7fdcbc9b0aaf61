// The figures of a run, as it prints them at its end.

import type { House } from "./house.ts";
import type { Judgement } from "./judge.ts";
import type { Match } from "./match.ts";
import { decimal, sum } from "./money.ts";
import { ACCOUNTS } from "./plan.ts";

/** How many there are of each name, the most frequent first. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

/** A name with what its requests cost in all. */
function sumOf(name: string, matches: readonly Match[]): string {
  const cost = decimal(sum(matches.map(({ verdict }) => verdict.cost)));
  return `  ${name}: ${matches.length} records, ${cost} USD`;
}

export function reportOf(houses: readonly House[], judgements: readonly Judgement[]): string[] {
  const asked = houses.flatMap((house) => house.asked);
  const calls = houses.flatMap((house) => [...house.calls.values()].flat());
  const kills = houses.flatMap((house) => house.kills);
  const matches = judgements.flatMap((judgement) => judgement.matches);
  const ofAccount = (name: string) => matches.filter(({ asked: { account } }) => account === name);
  const ofBasis = (name: string) => matches.filter(({ verdict: { basis } }) => basis === name);
  return [
    `requests: ${asked.length}: ${counted(asked.map(({ verdict, api }) => `${verdict} (${api})`))}`,
    `calls at the provider: ${calls.length}: ${counted(calls.map(({ behaviour }) => behaviour))}`,
    `kills: ${counted(kills.map(({ worker }) => (worker ? "of a worker" : "of a gateway")))}`,
    `records: ${matches.length}: ${counted(matches.map(({ entry }) => entry.settle["status"]))}`,
    "billed by the figures of the provider, by an exact estimate, by one within bounds, nothing:",
    ...["provider", "estimated", "bounded", "none"].map((basis) => sumOf(basis, ofBasis(basis))),
    "accounts:",
    ...ACCOUNTS.map((account) => sumOf(account, ofAccount(account))),
    sumOf("all", matches),
    `receipts: ${houses.flatMap((house) => house.receipts).length}`,
    `statements: ${houses.flatMap((house) => house.statements).length}`,
    `comparisons: ${judgements.reduce((total, { comparisons }) => total + comparisons, 0)}`,
  ];
}
