// UsageStore.rebuild() of the file store: makes the months what the spend log says. Both sides are
// added up in buckets first; only records of buckets that differ are held in memory.
import type { Mark, ReadSettled, RebuildCounts, UsageRecord } from "../../usage-records/index.ts";
import {
  BUCKETS,
  bucketOf,
  fingerprint,
  parseUsageLine,
  recordText,
} from "../usage/usage-record.ts";
import type { MonthFiles } from "./month-files.ts";
import {
  createPlan,
  linesOf,
  monthOf,
  sourcesOf,
  writeMonths,
  type Plan,
  type Sources,
} from "./rewrite-months.ts";

/** Later than any time. */
const NEVER = "9999";

/** Rebuilds the months and replaces the marks: all or nothing. */
export async function rebuildMonths(
  files: MonthFiles,
  readSettled: ReadSettled,
  marks: readonly Mark[],
): Promise<RebuildCounts> {
  const cursor = files.hasCursor() ? await files.finishReplacing() : files.readCursor();
  const sources = sourcesOf(files, cursor);
  const { reach, differs } = await compareSums(sources, readSettled);
  const expected = await expectedRecords(readSettled, differs);
  const plan = createPlan();
  const review = createReview({ reach, differs, expected }, plan);
  for (const [month, source] of sources) {
    for await (const [lineNumber, line] of linesOf(source)) review.line(month, lineNumber, line);
    // A file that ends in the middle of a line, or before what counted, is written anew as far as
    // it can be read.
    if (source.size !== cursor.months.get(month)) plan.touch(month);
  }
  const counts = review.finish();
  const rewritten = await writeMonths(files, sources, plan);
  const kept = [...sources].map(([month, { size }]) => [month, size] as const);
  await files.replace({ sizes: new Map([...kept, ...rewritten]), rewritten, marks });
  return counts;
}

/**
 * Reads a line as a record. Earlier versions filled up files that were too short with NUL bytes;
 * what follows them is a record. Undefined if the line is no record.
 */
const salvage = (line: string): UsageRecord | undefined =>
  parseUsageLine(line.slice(line.lastIndexOf("\0") + 1));

/**
 * Whether a record knows more than the spend log. If the spend log only says that another process
 * found the request unsettled, it is older than a record that says how the request ended.
 */
const knowsMore = (recorded: UsageRecord, settled: UsageRecord): boolean =>
  settled.status === "interrupted" && recorded.status !== "interrupted";

/** What the sums of both sides say. */
interface Comparison {
  /**
   * When the first request of the spend log ended. What ended before it has no lines there any
   * more.
   */
  readonly reach: string;
  /** Whether the bucket of a record differs. */
  readonly differs: (record: UsageRecord) => boolean;
}

async function compareSums(sources: Sources, readSettled: ReadSettled): Promise<Comparison> {
  const sums = new BigUint64Array(BUCKETS);
  let reach = NEVER;
  for await (const records of readSettled()) {
    for (const record of records) {
      sums[bucketOf(record)]! += fingerprint(record);
      if (record.ended_at < reach) reach = record.ended_at;
    }
  }
  for (const source of sources.values()) {
    for await (const [, line] of linesOf(source)) {
      const record = salvage(line);
      if (record && record.ended_at >= reach) sums[bucketOf(record)]! -= fingerprint(record);
    }
  }
  return { reach, differs: (record) => sums[bucketOf(record)] !== 0n };
}

/** The records of the spend log whose buckets differ, by usage_id. */
async function expectedRecords(
  readSettled: ReadSettled,
  differs: (record: UsageRecord) => boolean,
): Promise<ReadonlyMap<string, UsageRecord>> {
  const expected = new Map<string, UsageRecord>();
  for await (const records of readSettled()) {
    for (const record of records.filter(differs)) {
      const earlier = expected.get(record.usage_id);
      if (!earlier || knowsMore(record, earlier)) expected.set(record.usage_id, record);
    }
  }
  return expected;
}

/** What the lines are judged by. */
interface Expectation extends Comparison {
  /** The records of the spend log whose buckets differ, by usage_id. */
  readonly expected: ReadonlyMap<string, UsageRecord>;
}

/** Decides about each line of the months, and plans the changes. */
interface Review {
  line(month: string, lineNumber: number, line: string): void;
  /** Adds the records that no line has. Returns what was done to all. */
  finish(): RebuildCounts;
}

function createReview({ reach, differs, expected }: Expectation, plan: Plan): Review {
  const counts = { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0 };
  const seen = new Set<string>();

  /** Decides about a record whose bucket differs. Returns the name of the count that it adds to. */
  function decide(month: string, lineNumber: number, record: UsageRecord): keyof RebuildCounts {
    const { usage_id } = record;
    if (seen.has(usage_id)) {
      plan.remove(month, lineNumber);
      return "removed";
    }
    seen.add(usage_id);
    const settled = expected.get(usage_id);
    if (!settled || knowsMore(record, settled)) return "left";
    if (recordText(settled) === recordText(record)) return "unchanged";
    if (monthOf(settled) === month) {
      plan.replace(month, lineNumber, settled);
    } else {
      plan.remove(month, lineNumber);
      plan.add(settled);
    }
    return "changed";
  }

  return {
    line(month, lineNumber, line) {
      const record = salvage(line);
      if (!record) {
        counts.removed += 1;
        plan.remove(month, lineNumber);
        return;
      }
      if (line.includes("\0")) plan.replace(month, lineNumber, record);
      const isOutOfReach = !expected.has(record.usage_id) && record.ended_at < reach;
      if (isOutOfReach) counts.left += 1;
      else if (!differs(record)) counts.unchanged += 1;
      else counts[decide(month, lineNumber, record)] += 1;
    },
    finish() {
      for (const record of expected.values()) {
        if (seen.has(record.usage_id)) continue;
        counts.added += 1;
        plan.add(record);
      }
      return counts;
    },
  };
}
