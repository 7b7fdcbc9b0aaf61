// The figures of a run, as it prints them at its end.

import type { Asked } from "./client.ts";
import type { House, Line } from "./house.ts";
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

/** Each name with what its requests cost in all. */
function sumOf(matches: readonly Match[], name: string): string {
  const cost = decimal(sum(matches.map(({ verdict }) => verdict.cost)));
  return `  ${name}: ${matches.length} records, ${cost} USD`;
}

const isShared = ({ entry }: Match): boolean =>
  entry.settle["attempts"].some(({ share }: Line) => share);

export function reportOf(houses: readonly House[], judgements: readonly Judgement[]): string[] {
  const all = <T>(pick: (house: House) => readonly T[]): T[] => houses.flatMap(pick);
  const asked = all((house) => house.asked);
  const answered = all((house) => [...house.calls.values()]);
  const calls = answered.flat();
  const matches = judgements.flatMap((judgement) => judgement.matches);
  const changes = all((house) => house.changes).length - houses.length;
  const workers = all((house) => house.kills).filter(({ worker }) => worker).length;
  const verdictOf = ({ verdict, code, status }: Asked) =>
    verdict === "error" ? `error ${code ?? status}` : verdict;
  const repeated = asked.filter(({ sentId }) => sentId?.startsWith("again-")).length;
  const others = asked.filter(({ api }) => api !== "chat").map(({ api }) => api);
  return [
    `requests: ${asked.length}: ${counted(asked.map(verdictOf))}`,
    `  of other APIs: ${counted(others)}; with an id that others have too: ${repeated}`,
    `calls at the provider: ${calls.length}: ${counted(calls.map(({ behaviour }) => behaviour))}`,
    `  requests called more than once: ${answered.filter(({ length }) => length > 1).length}`,
    `kills: ${all((house) => house.kills).length}, ${workers} of them of workers`,
    `changes of prices: ${changes}`,
    `records: ${matches.length}: ${counted(matches.map(({ entry }) => entry.settle["status"]))}`,
    `  of streams that broke and were billed in shares: ${matches.filter(isShared).length}`,
    "billed by the figures of the provider, by an exact estimate, by one within bounds, nothing:",
    ...["provider", "estimated", "bounded", "none"].map((basis) =>
      sumOf(
        matches.filter(({ verdict }) => verdict.basis === basis),
        basis,
      ),
    ),
    "accounts:",
    ...ACCOUNTS.map((account) =>
      sumOf(
        matches.filter((match) => match.asked.account === account),
        account,
      ),
    ),
    sumOf(matches, "all"),
    `receipts: ${all((house) => house.receipts).length}`,
    `statements: ${all((house) => house.statements).length}`,
    `comparisons: ${judgements.reduce((total, { comparisons }) => total + comparisons, 0)}`,
  ];
}
