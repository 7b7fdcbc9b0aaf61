// Usage records whose lines the spend log has no more. Their segments were deleted after `spend.keep_days`, and left sums behind: a
// month in which both sides come to the same is proved. Whatever else there is of them is a difference.
import {
  addSums,
  costText,
  createMonthSums,
  isSameSum,
  NO_RECORDS,
  type MonthSums,
  type RecordSum,
} from "./retired.ts";
import type { UsageRecord } from "./records.ts";

const MAX_NAMED = 10_000; // young records that are named one by one

/** Usage records, and when the first and the last of them ended. */
export type RecordSpan = Pick<RecordSum, "records" | "from" | "to">;
const spanOf = ({ records, from, to }: RecordSum): RecordSpan =>
  records > 0 ? { records, from, to } : { records: 0, from: null, to: null };

/** What the sums of deleted segments say of the records without lines. */
export interface OrphanVerdict {
  readonly proved: RecordSpan;
  /** Records older than keep_days that nothing proves. */
  readonly notProved: RecordSpan;
  /** Young records that are a part of either of them. */
  readonly youngTaken: RecordSum;
}

const withCost = (sum: RecordSum): string => `${sum.records} for ${costText(sum)}`;
const spanText = ({ from, to }: RecordSum): string => `from ${from} to ${to}`;

/** `keptSince`: what ended from here on should have its lines. */
export function createOrphans(keptSince: string) {
  const old = createMonthSums();
  const young = createMonthSums();
  /** When young records ended, by their ids. */
  const named = new Map<string, string>();
  const isYoung = ({ ended_at }: UsageRecord): boolean => ended_at >= keptSince;

  function tellYoung(month: string, { records }: RecordSum, tell: (text: string) => void): void {
    const here = [...named].filter(([, ended_at]) => ended_at.startsWith(month));
    for (const [id, ended_at] of here)
      tell(`${id}: in the usage records, ended ${ended_at}, without lines in the spend log`);
    if (named.size >= MAX_NAMED)
      tell(`${month}: in all ${records} such records, without lines in the spend log`);
  }

  return {
    isYoung,
    add(record: UsageRecord): void {
      (isYoung(record) ? young : old).add(record);
      if (isYoung(record) && named.size < MAX_NAMED) named.set(record.usage_id, record.ended_at);
    },
    /** Takes a record back that turns out to have lines. */
    remove(record: UsageRecord): void {
      (isYoung(record) ? young : old).remove(record);
      named.delete(record.usage_id);
    },
    judge(retired: MonthSums, tell: (text: string) => void): OrphanVerdict {
      let [proved, notProved, youngTaken] = [NO_RECORDS, NO_RECORDS, NO_RECORDS];
      const months = [...old.months().keys(), ...young.months().keys(), ...retired.keys()];
      for (const month of [...new Set(months)].sort()) {
        const expected = retired.get(month) ?? NO_RECORDS;
        const older = old.months().get(month) ?? NO_RECORDS;
        const younger = young.months().get(month) ?? NO_RECORDS;
        const all = addSums(older, younger);
        if (isSameSum(all, expected)) {
          // keep_days may have been raised since the segments were deleted.
          proved = addSums(proved, all);
          youngTaken = addSums(youngTaken, younger);
          continue;
        }
        if (isSameSum(older, expected)) {
          tellYoung(month, younger, tell);
          proved = addSums(proved, older);
          continue;
        }
        tell(describeMonth(month, expected.records > 0 ? all : older, expected));
        if (all.records === expected.records) {
          notProved = addSums(notProved, all);
          youngTaken = addSums(youngTaken, younger);
          continue;
        }
        tellYoung(month, younger, tell);
        notProved = addSums(notProved, older);
      }
      return { proved: spanOf(proved), notProved: spanOf(notProved), youngTaken };
    },
  };
}

/** How the records of a month that have no lines differ from what the deleted segments had. */
function describeMonth(month: string, found: RecordSum, expected: RecordSum): string {
  if (expected.records === 0)
    return `${month}: nothing proves usage records that have no lines in the spend log: ${withCost(found)}, which ended ${spanText(found)}; no sums of a retired segment are there`;
  const isAltered = found.records === expected.records && costText(found) === costText(expected);
  const more = isAltered ? ": something else in them was altered" : "";
  return `${month}: usage records without lines in the spend log are ${withCost(found)}, and the sums of the retired segments, which ended ${spanText(expected)}, are ${withCost(expected)}${more}`;
}
