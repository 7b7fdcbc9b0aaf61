// Months of the file store written anew: by `books rebuild`, from the spend log, and where a record that says "interrupted" turns out
// to have been settled otherwise. New files are written beside the old ones, and take their places together (month-files.ts).
import { existsSync, statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { readLines } from "./files.ts";
import type { Cursor, MonthFiles } from "./month-files.ts";
import {
  BUCKETS,
  bucketOf,
  fingerprint,
  idIn,
  parseUsageLine,
  textOf,
  type UsageRecord,
} from "./records.ts";
import type { RebuildCounts, UsageChange } from "./usage-store.ts";
import type { Mark } from "./segments.ts";

type Settled = () => AsyncIterable<readonly UsageRecord[]>;

/** The part of a month's file that counts. */
interface Source {
  readonly path: string;
  readonly size: number;
}
/** What becomes of lines of a month, by their numbers from 0: another text with its newline, or "" for none. */
type Edits = Map<number, string>;
interface Plan {
  readonly edits: Map<string, Edits>;
  /** Records to be added, by month. */
  readonly additions: Map<string, UsageRecord[]>;
}

const lineOf = (record: UsageRecord): string => `${JSON.stringify(record)}\n`;
const monthOf = ({ ended_at }: UsageRecord): string => ended_at.slice(0, 7);

function addTo<T>(lists: Map<string, T[]>, month: string, item: T): void {
  const list = lists.get(month) ?? [];
  list.push(item);
  lists.set(month, list);
}

function edit(plan: Plan, month: string, lineNumber: number, text: string): void {
  const edits = plan.edits.get(month) ?? new Map<number, string>();
  edits.set(lineNumber, text);
  plan.edits.set(month, edits);
}

/** The months as far as they are there: of a file that is too short what it has; without a cursor whatever is there. */
function sourcesOf(files: MonthFiles, cursor: Cursor): ReadonlyMap<string, Source> {
  const known = files.hasCursor();
  const months = known ? [...cursor.months.keys()].sort() : files.monthsThere();
  const sources = new Map<string, Source>();
  for (const month of months) {
    const path = files.pathOf(month, cursor);
    if (!existsSync(path)) continue;
    const { size } = statSync(path);
    sources.set(month, {
      path,
      size: known ? Math.min(size, cursor.months.get(month) ?? 0) : size,
    });
  }
  return sources;
}

async function* linesOf({ path, size }: Source): AsyncGenerator<readonly [number, string]> {
  let lineNumber = 0;
  for await (const { lines } of readLines(path, 0, size)) {
    for (const line of lines) {
      yield [lineNumber, line];
      lineNumber += 1;
    }
  }
}

/** Writes the months that a plan changes as new files, on the disk. Resolves with their sizes. */
async function writeMonths(
  files: MonthFiles,
  sources: ReadonlyMap<string, Source>,
  { edits, additions }: Plan,
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const month of new Set([...edits.keys(), ...additions.keys()])) {
    const file = await open(files.newFileOf(month), "w", 0o600);
    try {
      sizes.set(
        month,
        await writeMonth(file, sources.get(month), edits.get(month), additions.get(month)),
      );
      await file.sync();
    } finally {
      await file.close();
    }
  }
  return sizes;
}

async function writeMonth(
  file: FileHandle,
  source: Source | undefined,
  edits: Edits = new Map(),
  additions: readonly UsageRecord[] = [],
): Promise<number> {
  let size = 0;
  let lineNumber = 0;
  async function write(text: string): Promise<void> {
    await file.appendFile(text);
    size += Buffer.byteLength(text);
  }
  if (source) {
    for await (const { lines } of readLines(source.path, 0, source.size)) {
      const first = lineNumber;
      await write(lines.map((line, at) => edits.get(first + at) ?? `${line}\n`).join(""));
      lineNumber += lines.length;
    }
  }
  await write(additions.map(lineOf).join(""));
  return size;
}

/** Adds records of which some take the place of one that is there, in whatever month. */
export async function replaceRecords(
  files: MonthFiles,
  { records, corrections }: UsageChange,
  marks: (old: Cursor) => readonly Mark[],
): Promise<void> {
  const cursor = await files.finishReplacing();
  const sources = sourcesOf(files, cursor);
  const plan: Plan = { edits: new Map(), additions: new Map() };
  const right = new Set<string>(); // corrected already
  for (const [month, source] of sources) {
    for await (const [lineNumber, line] of linesOf(source)) {
      if (!corrections.has(idIn(line))) continue;
      if (parseUsageLine(line)?.status === "interrupted") edit(plan, month, lineNumber, "");
      else right.add(idIn(line));
    }
  }
  for (const record of records) {
    if (!right.has(record.usage_id)) addTo(plan.additions, monthOf(record), record);
  }
  const sizes = await writeMonths(files, sources, plan);
  await files.replace({
    sizes: new Map([...cursor.months, ...sizes]),
    rewritten: sizes,
    marks: marks(cursor),
  });
}

/** A line as a record. Earlier versions extended files that were too short with NUL bytes: what stands behind them is a record. */
const salvage = (line: string): UsageRecord | undefined =>
  parseUsageLine(line.slice(line.lastIndexOf("\0") + 1));

/** The record of a request that has ended stays, where the spend log only has that another process found it unsettled: such a spend
 * log is older than the record. */
const knowsMore = (recorded: UsageRecord, settled: UsageRecord): boolean =>
  settled.status === "interrupted" && recorded.status !== "interrupted";

/** What both sides come to in sums, in flat memory. */
async function compareSums(sources: ReadonlyMap<string, Source>, settled: Settled) {
  const sums = new BigUint64Array(BUCKETS);
  let reach = "9999"; // when the first request of the spend log ended: what ended before it has no lines any more
  for await (const records of settled()) {
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
  return { reach, differs: (record: UsageRecord) => sums[bucketOf(record)] !== 0n };
}

/** The records of the spend log whose sums differ from those in the months, by id: only these are held in memory. */
async function expectedRecords(settled: Settled, differs: (record: UsageRecord) => boolean) {
  const expected = new Map<string, UsageRecord>();
  for await (const records of settled()) {
    for (const record of records.filter(differs)) {
      const earlier = expected.get(record.usage_id);
      if (!earlier || knowsMore(record, earlier)) expected.set(record.usage_id, record);
    }
  }
  return expected;
}

/** Makes the months what the spend log says; see UsageStore.rebuild. */
export async function rebuildMonths(
  files: MonthFiles,
  settled: Settled,
  marks: readonly Mark[],
): Promise<RebuildCounts> {
  const cursor = files.hasCursor() ? await files.finishReplacing() : files.readCursor();
  const sources = sourcesOf(files, cursor);
  const { reach, differs } = await compareSums(sources, settled);
  const expected = await expectedRecords(settled, differs);
  const plan: Plan = { edits: new Map(), additions: new Map() };
  const counts = { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0 };
  const seen = new Set<string>();

  function decide(month: string, lineNumber: number, line: string): void {
    const record = salvage(line);
    if (!record) {
      counts.removed += 1;
      edit(plan, month, lineNumber, "");
      return;
    }
    if (line.includes("\0")) edit(plan, month, lineNumber, lineOf(record));
    const { usage_id } = record;
    const settledAs = expected.get(usage_id);
    if (!settledAs && record.ended_at < reach) {
      counts.left += 1;
      return;
    }
    if (!differs(record)) {
      counts.unchanged += 1;
      return;
    }
    if (seen.has(usage_id)) {
      counts.removed += 1;
      edit(plan, month, lineNumber, "");
      return;
    }
    seen.add(usage_id);
    if (!settledAs || knowsMore(record, settledAs)) {
      counts.left += 1;
      return;
    }
    if (textOf(settledAs) === textOf(record)) {
      counts.unchanged += 1;
      return;
    }
    counts.changed += 1;
    const stays = monthOf(settledAs) === month;
    edit(plan, month, lineNumber, stays ? lineOf(settledAs) : "");
    if (!stays) addTo(plan.additions, monthOf(settledAs), settledAs);
  }

  for (const [month, source] of sources) {
    for await (const [lineNumber, line] of linesOf(source)) decide(month, lineNumber, line);
    // A file that ends in the middle of a line, or before what counted, is written anew as far as it can be read.
    if (source.size !== cursor.months.get(month) && !plan.edits.has(month))
      plan.edits.set(month, new Map());
  }
  for (const record of expected.values()) {
    if (seen.has(record.usage_id)) continue;
    counts.added += 1;
    addTo(plan.additions, monthOf(record), record);
  }
  const rewritten = await writeMonths(files, sources, plan);
  const kept = [...sources].map(([month, { size }]) => [month, size] as const);
  await files.replace({ sizes: new Map([...kept, ...rewritten]), rewritten, marks });
  return counts;
}
