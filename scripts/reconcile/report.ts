// The figures of a run, as it prints them at its end.

import type { House } from "./house.ts";
import type { Judgement } from "./judge.ts";
import { amountOf, sum } from "./money.ts";

/** How many there are of each name, the most frequent first. */
function counted(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

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
