// Makes heads: of a day that is over, with the hash tree of its usage records, or of the moment,
// for an auditor to keep.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import { segmentsIn } from "../../books/index.ts";
import { USAGE_COLUMNS, type UsageRecord } from "../../usage-records/index.ts";
import { treeOf, type DayTree } from "../tree/day-tree.ts";
import { NO_SEAL } from "../chain/chain.ts";
import type { Head, HeadLine, HeadMonth, HeadSegment, LateRecord } from "./heads.ts";
import { createLeafList } from "../tree/leaf-list.ts";
import { leafOf } from "../tree/merkle.ts";
import { firstSpendId } from "../chain/segment-ends.ts";
import { scanSegment, type SegmentScan, type SettledLine } from "../chain/scan-segment.ts";
import type { SealKey } from "./seal-key.ts";
import { signedText } from "./signed.ts";

/** What a head is made from. */
export interface HeadSources {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** The heads before. */
  readonly heads: readonly HeadLine[];
  /** The day of the first head, or the one that it will have. */
  readonly firstDay: string;
  readonly key: SealKey;
  /** What was added to the files of months. */
  readonly months: readonly HeadMonth[];
  /** The time of the head, in milliseconds since 1970. */
  readonly now: number;
  /** Gets a description of each line that breaks its chain. */
  readonly broken: (text: string) => void;
}

/** A usage record with its columns in their order, in which a database may not give them. */
export const inColumnOrder = (record: UsageRecord): UsageRecord =>
  Object.fromEntries(
    USAGE_COLUMNS.map((column) => [column, record[column]]),
  ) as unknown as UsageRecord;

/** A usage record as it stands in the file of a month, whichever store it comes from. */
export const recordLine = (record: UsageRecord): string => JSON.stringify(inColumnOrder(record));

/** The leaf of a usage record. */
export const recordLeaf = (record: UsageRecord): Buffer => leafOf(recordLine(record));

const dayOf = ({ ended_at }: UsageRecord): string => ended_at.slice(0, 10);

/** How many lines of each segment the heads before have, by the spend_id of its first line. */
export function coveredLines(heads: readonly HeadLine[]): ReadonlyMap<string, number> {
  const covered = new Map<string, number>();
  for (const { head } of heads)
    for (const { first, lines } of head.segments) covered.set(first, lines);
  return covered;
}

/** The segments that may have lines which the heads before do not know, or records of `day`. */
function candidates({ spendDir, heads, firstDay }: HeadSources, day: string): string[] {
  const known = new Set(heads.flatMap(({ head }) => head.segments.map(({ segment }) => segment)));
  const dayStart = Date.parse(day);
  if (!existsSync(spendDir)) return [];
  return segmentsIn(spendDir).filter((name) => {
    const begun = name.slice(0, 10);
    if (begun > day) return false;
    const isNew = begun >= firstDay && !known.has(name);
    const stat = statSync(join(spendDir, name), { throwIfNoEntry: false });
    return stat !== undefined && (isNew || stat.mtimeMs >= dayStart);
  });
}

/** What the segments of a head hold. */
interface Found {
  readonly segments: readonly HeadSegment[];
  readonly tree: DayTree;
  readonly late: readonly LateRecord[];
  readonly replaced: readonly LateRecord[];
}

/** A record as a later head names it. */
const lateRecord = (record: UsageRecord): LateRecord => ({
  day: dayOf(record),
  usage_id: record.usage_id,
  leaf: recordLeaf(record).toString("hex"),
});

/** Sorts the records of segments into those of the day, of a day before, and of none. */
function createSorter(day: string, firstDay: string) {
  const leaves = createLeafList();
  const late: LateRecord[] = [];
  const replaced: LateRecord[] = [];
  return {
    leaves,
    late,
    replaced,
    /** `covered`: how many lines of its segment the heads before have. */
    take({ record, line, instead }: SettledLine, covered: number): void {
      const ended = dayOf(record);
      if (ended === day) leaves.add(record.usage_id, recordLeaf(record));
      const isKnownDay = ended < day && ended >= firstDay;
      if (isKnownDay && line > covered) late.push(lateRecord(record));
      const before = instead && dayOf(instead.record);
      const wasSealed = before !== undefined && before < day && before >= firstDay;
      if (wasSealed && instead!.line <= covered && line > covered)
        replaced.push(lateRecord(instead!.record));
    },
  };
}

async function readSegments(sources: HeadSources, day: string): Promise<Found> {
  const { spendDir, heads, firstDay, broken } = sources;
  const covered = coveredLines(heads);
  const sorter = createSorter(day, firstDay);
  const segments: HeadSegment[] = [];
  const seen = new Set<string>();
  for (const name of candidates(sources, day)) {
    const path = join(spendDir, name);
    const first = firstSpendId(path);
    // Of two copies of a segment the first counts.
    if (first === "" || seen.has(first)) continue;
    seen.add(first);
    const before = covered.get(first) ?? 0;
    const scan = await scanSegment(path, {
      finding: (line, what) => broken(`spend/${name}, line ${line}: ${what}`),
      settled: (settled) => sorter.take(settled, before),
    });
    const entry = headSegment(name, scan);
    if (entry.lines > before) segments.push(entry);
  }
  const tree = await treeOf(await sorter.leaves.sorted());
  return { segments, tree, late: sorter.late, replaced: sorter.replaced };
}

const headSegment = (segment: string, scan: SegmentScan): HeadSegment => ({
  segment,
  first: scan.first,
  lines: scan.seal === null ? scan.lines : scan.sealedLines,
  seal: scan.seal,
});

/** A head with its text, and the tree of its day. */
export interface ClosedDay {
  readonly line: HeadLine;
  readonly tree: DayTree;
}

/** Makes the head of a day that is over, without writing it. */
export async function makeDayHead(sources: HeadSources, day: string): Promise<ClosedDay> {
  const { tree, ...found } = await readSegments(sources, day);
  const number = sources.heads.length + 1;
  const closed = { number, records: tree.leaves.count, root: tree.root };
  return { line: signHead(sources, { ...found, ...closed, day }), tree };
}

/** Makes the head of the moment. `day`: that of the moment. */
export async function makeHeadNow(sources: HeadSources, day: string): Promise<HeadLine> {
  const { segments } = await readSegments(sources, day);
  const open = { number: null, records: null, root: null, late: [], replaced: [] };
  return signHead(sources, { ...open, segments, day });
}

type HeadContent = Pick<
  Head,
  "day" | "number" | "segments" | "records" | "root" | "late" | "replaced"
>;

function signHead({ heads, months, key, now }: HeadSources, content: HeadContent): HeadLine {
  const head: Head = {
    type: "head",
    day: content.day,
    number: content.number,
    made_at: new Date(now).toISOString(),
    previous: heads.at(-1)?.hash ?? NO_SEAL,
    segments: content.segments,
    records: content.records,
    root: content.root,
    months,
    late: content.late,
    replaced: content.replaced,
    public_key: key.publicHex,
  };
  const text = signedText(JSON.stringify(head), key);
  return { head, text, hash: sha256(text) };
}
