// The sums that were kept of closed days, from which statements and budgets are made: they must be
// those of the records.
import type { Findings } from "../proof/index.ts";
import { createSummer, DIMENSIONS, sumsText, type SumBy } from "../records/index.ts";
import type { BooksFiles } from "../usage/index.ts";

type Sums = readonly SumBy<(typeof DIMENSIONS)[number]>[];

/** Adds the records of each closed day up, and reports the days whose sums are others. */
export async function checkKeptSums(
  { store, days }: Pick<BooksFiles, "store" | "days">,
  findings: Findings,
): Promise<void> {
  for (const { closed } of days.all()) {
    if (closed.records === 0) continue;
    const filter = { day: closed.day, ownOnly: true };
    const summer = createSummer(DIMENSIONS);
    try {
      for await (const records of store.records(filter))
        for (const record of records) summer.addRecord(record);
      if (textOf(await store.sums(filter, DIMENSIONS)) === textOf(summer.sums())) continue;
      findings.add(
        `the sums of ${closed.day}`,
        "are not those of its usage records: 'books rebuild' makes them anew",
      );
    } catch (error) {
      findings.add(`the sums of ${closed.day}`, `cannot be compared: ${(error as Error).message}`);
    }
  }
}

const textOf = (sums: Sums): string =>
  sums
    .map((sum) => sumsText([sum]))
    .sort()
    .join("");
