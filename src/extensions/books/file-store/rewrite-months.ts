// Writes months of the file store anew: new files are written beside the old ones, and take their
// places together.
import { existsSync, statSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import type { UsageChange, UsageRecord } from "../../usage-records/index.ts";
import { readLines } from "../read-lines.ts";
import { parseUsageLine, usageIdIn } from "../usage/usage-record.ts";
import type { Cursor } from "./cursor.ts";
import type { ChangeMarks, MonthFiles } from "./month-files.ts";

/** The part of a month's file that counts. */
export interface Source {
  /** Path of the file that holds the month at the moment. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
}

/** The months that are there. */
export type Sources = ReadonlyMap<string, Source>;

/**
 * New texts of a month's lines, by line number from 0. A text has its line end, or is "" to remove
 * the line.
 */
type Edits = ReadonlyMap<number, string>;

/** What is to change in the months. */
export interface Plan {
  /** Writes a month anew, even if none of its lines changes. */
  touch(month: string): void;
  /** Removes a line. */
  remove(month: string, lineNumber: number): void;
  /** Puts a record in the place of a line. */
  replace(month: string, lineNumber: number, record: UsageRecord): void;
  /** Adds a record at the end of its month. */
  add(record: UsageRecord): void;
  /** The months that change. */
  months(): ReadonlySet<string>;
  /** The edits of a month. */
  edits(month: string): Edits;
  /** The records to add to a month. */
  additions(month: string): readonly UsageRecord[];
}

/** A plan that changes nothing. */
export function createPlan(): Plan {
  const edits = new Map<string, Map<number, string>>();
  const additions = new Map<string, UsageRecord[]>();

  function editsOf(month: string): Map<number, string> {
    const known = edits.get(month) ?? new Map<number, string>();
    edits.set(month, known);
    return known;
  }

  return {
    touch(month) {
      editsOf(month);
    },
    remove(month, lineNumber) {
      editsOf(month).set(lineNumber, "");
    },
    replace(month, lineNumber, record) {
      editsOf(month).set(lineNumber, lineOf(record));
    },
    add(record) {
      const month = monthOf(record);
      const records = additions.get(month) ?? [];
      records.push(record);
      additions.set(month, records);
    },
    months: () => new Set([...edits.keys(), ...additions.keys()]),
    edits: (month) => edits.get(month) ?? new Map(),
    additions: (month) => additions.get(month) ?? [],
  };
}

/** The month of a record: that in which it ended. */
export const monthOf = ({ ended_at }: UsageRecord): string => ended_at.slice(0, 7);

const lineOf = (record: UsageRecord): string => `${JSON.stringify(record)}\n`;

/**
 * The months as far as they are there: of a file that is too short, what it has; without a cursor,
 * every file as it is.
 */
export function sourcesOf(files: MonthFiles, cursor: Cursor): Sources {
  const hasCursor = files.hasCursor();
  const months = hasCursor ? [...cursor.months.keys()].sort() : files.monthsThere();
  const sources = new Map<string, Source>();
  for (const month of months) {
    const path = files.pathOf(month, cursor);
    if (!existsSync(path)) continue;
    const { size } = statSync(path);
    const counted = hasCursor ? (cursor.months.get(month) ?? 0) : size;
    sources.set(month, { path, size: Math.min(size, counted) });
  }
  return sources;
}

/** Yields the lines of a month with their numbers, from 0. */
export async function* linesOf({
  path,
  size,
}: Source): AsyncGenerator<readonly [lineNumber: number, line: string]> {
  let lineNumber = 0;
  for await (const { lines } of readLines(path, { to: size })) {
    for (const line of lines) {
      yield [lineNumber, line];
      lineNumber += 1;
    }
  }
}

/**
 * Writes the months that a plan changes as new files, and brings them to the disk. Resolves with
 * their sizes.
 */
export async function writeMonths(
  files: MonthFiles,
  sources: Sources,
  plan: Plan,
): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const month of plan.months()) {
    const file = await open(files.newFileOf(month), "w", 0o600);
    try {
      sizes.set(month, await writeMonth(file, month, sources.get(month), plan));
      await file.sync();
    } finally {
      await file.close();
    }
  }
  return sizes;
}

/** Resolves with the number of bytes that were written. */
async function writeMonth(
  file: FileHandle,
  month: string,
  source: Source | undefined,
  plan: Plan,
): Promise<number> {
  const edits = plan.edits(month);
  let size = 0;
  let lineNumber = 0;
  async function write(text: string): Promise<void> {
    await file.appendFile(text);
    size += Buffer.byteLength(text);
  }
  if (source) {
    for await (const { lines } of readLines(source.path, { to: source.size })) {
      const first = lineNumber;
      await write(lines.map((line, index) => edits.get(first + index) ?? `${line}\n`).join(""));
      lineNumber += lines.length;
    }
  }
  await write(plan.additions(month).map(lineOf).join(""));
  return size;
}

/** Adds records of which some replace one that says "interrupted", in whatever month that is. */
export async function replaceRecords(
  files: MonthFiles,
  { records, corrections }: UsageChange,
  marks: ChangeMarks,
): Promise<void> {
  const cursor = await files.finishReplacing();
  const sources = sourcesOf(files, cursor);
  const plan = createPlan();
  /** Those that an earlier attempt has corrected already. */
  const corrected = new Set<string>();
  for (const [month, source] of sources) {
    for await (const [lineNumber, line] of linesOf(source)) {
      if (!corrections.has(usageIdIn(line))) continue;
      if (parseUsageLine(line)?.status === "interrupted") plan.remove(month, lineNumber);
      else corrected.add(usageIdIn(line));
    }
  }
  for (const record of records) {
    if (!corrected.has(record.usage_id)) plan.add(record);
  }
  const rewritten = await writeMonths(files, sources, plan);
  await files.replace({
    sizes: new Map([...cursor.months, ...rewritten]),
    rewritten,
    marks: marks(cursor.marks),
  });
}
