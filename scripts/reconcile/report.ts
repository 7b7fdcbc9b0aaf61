// The figures of a run, as it prints them at its end.

import type { House } from "./house.ts";
import type { Judgement } from "./judge.ts";
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

export function reportOf(houses: readonly House[], judgements: readonly Judgement[]): string[] {
  const asked = houses.flatMap((house) => house.asked);
  const calls = houses.flatMap((house) => [...house.calls.values()].flat());
  const matches = judgements.flatMap((judgement) => judgement.matches);
  const changes = houses.flatMap((house) => house.changes).length - houses.length;
  const verdictOf = ({ verdict, code }: (typeof asked)[number]) =>
    verdict === "error" ? `error ${code}` : verdict;
  const repeated = asked.filter(({ sentId }) => sentId?.startsWith("again-")).length;
  return [
    `requests: ${asked.length}: ${counted(asked.map(verdictOf))}`,
    `  ${asked.filter(({ stream }) => stream).length} streamed, ${repeated} with an id that others have too`,
    `calls at the provider: ${calls.length}: ${counted(calls.map(({ behaviour }) => behaviour))}`,
    `requests called more than once: ${houses.flatMap((house) => [...house.calls.values()]).filter((each) => each.length > 1).length}`,
    `kills: ${houses.flatMap((house) => house.kills).length}, changes of prices: ${changes}`,
    `records: ${matches.length}: ${counted(matches.map(({ entry }) => entry.settle["status"]))}`,
    `  billed by: ${counted(matches.map(({ verdict }) => verdict.basis))}`,
    ...["provider", "estimated", "bounded"].map(
      (basis) =>
        `  ${decimal(sum(matches.filter(({ verdict }) => verdict.basis === basis).map(({ verdict }) => verdict.cost)))} USD ${basis}`,
    ),
    `receipts: ${houses.flatMap((house) => house.receipts).length}, statements: ${houses.flatMap((house) => house.statements).length}`,
    ...ACCOUNTS.map((account) => {
      const own = matches.filter((match) => match.asked.account === account);
      return `  ${account}: ${own.length} records, ${decimal(sum(own.map(({ verdict }) => verdict.cost)))} USD`;
    }),
    `  all: ${decimal(sum(matches.map(({ verdict }) => verdict.cost)))} USD`,
    `comparisons: ${judgements.reduce((total, { comparisons }) => total + comparisons, 0)}`,
  ];
}
