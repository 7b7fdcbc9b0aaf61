// Proves the books against a kept head from between two closed days: the first bytes of segments,
// and the records that are made of them.
import { createCoverage, type ClosedDay, type Listing } from "../days/index.ts";
import { createRecordAdder, differencesFrom } from "../usage/index.ts";
import type { DayLine } from "../records/index.ts";
import type { Findings } from "./findings.ts";
import type { RecordSource } from "./record-source.ts";

const nameOf = ({ made_at }: ClosedDay): string => `the head that was kept, of ${made_at}`;

/** What heads say of a segment. */
export const headListings = (heads: readonly ClosedDay[], segment: string): readonly Listing[] =>
  heads.flatMap((head) => {
    const listings = createCoverage([head]).of(segment);
    return listings.map((listing) => ({ ...listing, by: `${nameOf(head)},` }));
  });

/** Compares the records that a head has: those booked after the last day before it. */
export async function proveHead(
  head: ClosedDay,
  closedDays: readonly ClosedDay[],
  days: readonly string[],
  { source, findings }: { readonly source: RecordSource; readonly findings: Findings },
): Promise<void> {
  const before = closedDays.filter(({ number }) => number < head.number);
  const coverage = createCoverage([...before, head]);
  const after = before.at(-1)?.day ?? "";
  const isCovered = ({ record }: DayLine): boolean =>
    record?.log !== undefined &&
    (coverage.of(record.log.segment).at(-1)?.lines ?? 0) >= record.log.line;
  const adder = createRecordAdder();
  for (const day of days.filter((name) => name > after))
    for await (const { lines } of source.linesOf(day)) adder.add(lines.filter(isCovered));
  const unequal = differencesFrom(head, adder.result());
  if (unequal.length > 0)
    findings.add(
      `the usage records after ${after || "the beginning"}`,
      `are not those of ${nameOf(head)}: ${unequal.join(", ")}`,
    );
}
