// Checks the stored sums of closed days against their records. Statements and budgets read the
// stored sums.
import type { DayProof, Findings } from "../proof/index.ts";
import {
  DIMENSIONS,
  sumsText,
  type Dimension,
  type SumBy,
  type UsageStore,
} from "../records/index.ts";

/** Reports the closed days whose stored sums do not match their records. */
export async function checkKeptSums(
  store: UsageStore,
  days: readonly DayProof[],
  findings: Findings,
): Promise<void> {
  for (const { day, closed, sums } of days) {
    if (!closed || closed.records === 0) continue;
    try {
      const kept = await store.sums({ day, ownOnly: true }, DIMENSIONS);
      if (textOf(kept) === textOf(sums)) continue;
      const what = "are not those of its usage records: 'books rebuild' makes them anew";
      findings.add(`the sums of ${day}`, what);
    } catch (error) {
      findings.add(`the sums of ${day}`, `cannot be compared: ${(error as Error).message}`);
    }
  }
}

const textOf = (sums: readonly SumBy<Dimension>[]): string =>
  sums
    .map((sum) => sumsText([sum]))
    .sort()
    .join("");
