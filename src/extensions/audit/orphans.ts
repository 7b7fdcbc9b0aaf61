// Usage records whose lines the spend log has no more. Their segments were deleted after
// `spend.keep_days`, and have left sums behind. A month in which both sides add up to the same is
// proved. Anything else about these records is a difference.
import type { UsageRecord } from "../usage-records/index.ts";
import {
  addSums,
  costText,
  createMonthSummer,
  isSameSum,
  NO_RECORDS,
  type MonthSums,
  type RecordSum,
} from "../books/index.ts";
import type { Report } from "./sides.ts";

/** How many young records are named one by one. */
const MAX_NAMED = 10_000;

/** A number of usage records, and when the first and the last of them ended. */
export type RecordSpan = Pick<RecordSum, "records" | "from" | "to">;

/** What the sums of deleted segments say of the records without lines. */
export interface OrphanVerdict {
  /** Records of months in which they add up to what the deleted segments had. */
  readonly proved: RecordSpan;
  /** Records older than keep_days that nothing proves. */
  readonly notProved: RecordSpan;
  /** Young records that are part of either of them. */
  readonly youngTaken: RecordSum;
}

/** Usage records without lines in the spend log. */
export interface Orphans {
  /** Whether a record is younger than keep_days, and should have its lines. */
  isYoung(record: UsageRecord): boolean;
  /** Takes a record that seems to have no lines. */
  add(record: UsageRecord): void;
  /** Takes back a record that turns out to have lines. */
  remove(record: UsageRecord): void;
  /** Compares the records with the sums of deleted segments, and reports differences. */
  judge(retired: MonthSums, report: Report): OrphanVerdict;
}

/** `keptSince` is the time of the oldest records that should have their lines, in ISO 8601. */
export function createOrphans(keptSince: string): Orphans {
  const old = createMonthSummer();
  const young = createMonthSummer();
  /** When young records ended, by usage_id. */
  const named = new Map<string, string>();
  const isYoung = ({ ended_at }: UsageRecord): boolean => ended_at >= keptSince;

  function reportYoung(month: string, { records }: RecordSum, report: Report): void {
    for (const [id, ended_at] of named) {
      if (!ended_at.startsWith(month)) continue;
      report(`${id}: in the usage records, ended ${ended_at}, without lines in the spend log`);
    }
    if (named.size >= MAX_NAMED)
      report(`${month}: in all ${records} such records, without lines in the spend log`);
  }

  return {
    isYoung,
    add(record) {
      (isYoung(record) ? young : old).add(record);
      if (isYoung(record) && named.size < MAX_NAMED) named.set(record.usage_id, record.ended_at);
    },
    remove(record) {
      (isYoung(record) ? young : old).remove(record);
      named.delete(record.usage_id);
    },
    judge(retired, report) {
      const sums = createVerdictSums();
      const months = [...old.months().keys(), ...young.months().keys(), ...retired.keys()];
      for (const month of [...new Set(months)].sort()) {
        const found: OrphanMonth = {
          expected: retired.get(month) ?? NO_RECORDS,
          older: old.months().get(month) ?? NO_RECORDS,
          younger: young.months().get(month) ?? NO_RECORDS,
        };
        const verdict = judgeMonth(found);
        if (verdict.differs) report(describeMonth(month, found));
        if (!verdict.takesYoung) reportYoung(month, found.younger, report);
        sums.add(found, verdict);
      }
      return sums.verdict();
    },
  };
}

/** Adds up the verdicts of months. */
function createVerdictSums() {
  let proved = NO_RECORDS;
  let notProved = NO_RECORDS;
  let youngTaken = NO_RECORDS;
  return {
    add({ older, younger }: OrphanMonth, { differs, takesYoung }: MonthVerdict): void {
      const taken = takesYoung ? addSums(older, younger) : older;
      if (differs) notProved = addSums(notProved, taken);
      else proved = addSums(proved, taken);
      if (takesYoung) youngTaken = addSums(youngTaken, younger);
    },
    verdict: (): OrphanVerdict => ({
      proved: spanOf(proved),
      notProved: spanOf(notProved),
      youngTaken,
    }),
  };
}

/** The records of a month that have no lines. */
interface OrphanMonth {
  /** What the deleted segments had. */
  readonly expected: RecordSum;
  /** Records older than keep_days. */
  readonly older: RecordSum;
  /** The others. */
  readonly younger: RecordSum;
}

interface MonthVerdict {
  /** The month is not proved. */
  readonly differs: boolean;
  /**
   * Young records come from the deleted segments too: keep_days was raised since. Otherwise each is
   * a difference.
   */
  readonly takesYoung: boolean;
}

function judgeMonth({ expected, older, younger }: OrphanMonth): MonthVerdict {
  const all = addSums(older, younger);
  if (isSameSum(all, expected)) return { differs: false, takesYoung: true };
  if (isSameSum(older, expected)) return { differs: false, takesYoung: false };
  return { differs: true, takesYoung: all.records === expected.records };
}

/** Describes how the records of a month differ from what the deleted segments had. */
function describeMonth(month: string, { expected, older, younger }: OrphanMonth): string {
  if (expected.records === 0)
    return (
      `${month}: nothing proves usage records that have no lines in the spend log: ` +
      `${withCost(older)}, which ended ${spanText(older)}; ` +
      "no sums of a retired segment are there"
    );
  const found = addSums(older, younger);
  const isAltered = found.records === expected.records && costText(found) === costText(expected);
  const more = isAltered ? ": something else in them was altered" : "";
  return (
    `${month}: usage records without lines in the spend log are ${withCost(found)}, ` +
    `and the sums of the retired segments, which ended ${spanText(expected)}, ` +
    `are ${withCost(expected)}${more}`
  );
}

const spanOf = ({ records, from, to }: RecordSum): RecordSpan =>
  records > 0 ? { records, from, to } : { records: 0, from: null, to: null };

const withCost = (sum: RecordSum): string => `${sum.records} for ${costText(sum)}`;

const spanText = ({ from, to }: RecordSum): string => `from ${from} to ${to}`;
