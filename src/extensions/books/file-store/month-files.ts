// The files of the file store: `usage/YYYY-MM.jsonl`, one usage record a line, and
// `usage/cursor.json`. Replacing cursor.json is the only moment at which anything changes. What a
// sync that died has appended does not count, and the next one cuts it off. Months that were
// written anew, beside the old ones (`.new`), count as soon as cursor.json names them, whichever
// process then gets to rename them.
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readJson } from "../../../config/json-file.ts";
import { replaceFile, syncToDisk } from "../../data-files/index.ts";
import type { Mark, StoreFault } from "../../usage-records/index.ts";
import { BooksFault } from "../books-fault.ts";
import { formatCursor, parseCursor, type Cursor } from "./cursor.ts";

const MONTH_FILE = /^\d{4}-\d\d\.jsonl$/;

/** The marks after a change, from those before it. */
export type ChangeMarks = (old: readonly Mark[]) => readonly Mark[];

/** Months that were written anew, and what then counts. */
export interface Replacement {
  /** How many bytes of each month count, of those that were not written anew too. */
  readonly sizes: ReadonlyMap<string, number>;
  /** The sizes of the new files. They are whole, and on the disk. */
  readonly rewritten: ReadonlyMap<string, number>;
  /** All marks from then on. */
  readonly marks: readonly Mark[];
}

/** The files in the folder of the file store. */
export interface MonthFiles {
  /**
   * Reads cursor.json anew, because another process may be the one that syncs. Absent: nothing was
   * copied yet.
   */
  readCursor(): Cursor;
  /** Whether cursor.json is there. */
  hasCursor(): boolean;
  /** Where the records of a month are at the moment. */
  pathOf(month: string, cursor: Cursor): string;
  /** Where to write a month anew. */
  newFileOf(month: string): string;
  /** Months that have a file, whatever the cursor says. */
  monthsThere(): readonly string[];
  /** What must be mended before anything is written. */
  faults(): readonly StoreFault[];
  /**
   * Appends to months, then moves the cursor. Throws a BooksFault if that would not continue what
   * is there.
   */
  append(texts: ReadonlyMap<string, string>, marks: ChangeMarks): Promise<void>;
  /** Puts new files of months in the place of the old ones: all or none. */
  replace(next: Replacement): Promise<void>;
  /**
   * Renames new files that count already, if a process died before it did. Resolves with the cursor
   * in force.
   */
  finishReplacing(): Promise<Cursor>;
}

/** The files in a folder, which append() makes. */
export function createMonthFiles(dir: string): MonthFiles {
  const paths = createPaths(dir);
  const { cursorFile, fileOf, newFileOf, pathOf } = paths;
  const hasCursor = (): boolean => existsSync(cursorFile);
  const readCursor = (): Cursor => parseCursor(readJson(cursorFile, {}, ["ENOENT"]));
  const writeCursor = (cursor: Cursor): Promise<void> =>
    replaceFile(cursorFile, formatCursor(cursor));
  const faults = (): readonly StoreFault[] => findFaults(paths, readCursor);

  async function finishReplacing(): Promise<Cursor> {
    const cursor = readCursor();
    if (cursor.replacing.length === 0) return cursor;
    for (const month of cursor.replacing) {
      if (existsSync(newFileOf(month))) renameSync(newFileOf(month), fileOf(month));
    }
    await syncToDisk(dir);
    const finished = { ...cursor, replacing: [] };
    await writeCursor(finished);
    return finished;
  }

  return {
    readCursor,
    hasCursor,
    pathOf,
    newFileOf,
    monthsThere: paths.monthsThere,
    faults,
    async append(texts, marks) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const [fault] = faults();
      if (fault) throw new BooksFault(fault.detail);
      const cursor = await finishReplacing();
      // Months without a cursor are a fault, so the cursor has to be there before the first month.
      if (!hasCursor()) await writeCursor(cursor);
      const months = new Map(cursor.months);
      for (const [month, text] of texts) {
        const size = months.get(month) ?? 0;
        // This only ever shortens the file: one that is too short is a fault.
        if (size > 0) await truncate(fileOf(month), size);
        const flag = size > 0 ? "a" : "w";
        await writeFile(fileOf(month), text, { flag, mode: 0o600, flush: true });
        months.set(month, size + Buffer.byteLength(text));
      }
      await writeCursor({ ...cursor, months, marks: marks(cursor.marks) });
    },
    async replace(next) {
      const rewritten = new Map(readCursor().rewritten);
      const replacing = [...next.rewritten.keys()];
      for (const month of replacing) rewritten.set(month, (rewritten.get(month) ?? 0) + 1);
      await syncToDisk(dir);
      await writeCursor({ marks: next.marks, months: next.sizes, rewritten, replacing });
      await finishReplacing();
    },
    finishReplacing,
  };
}

/** The names in the folder. */
interface Paths {
  readonly cursorFile: string;
  readonly fileOf: (month: string) => string;
  readonly newFileOf: (month: string) => string;
  readonly pathOf: (month: string, cursor: Cursor) => string;
  readonly monthsThere: () => readonly string[];
}

function createPaths(dir: string): Paths {
  const fileOf = (month: string): string => join(dir, `${month}.jsonl`);
  const newFileOf = (month: string): string => `${fileOf(month)}.new`;
  return {
    cursorFile: join(dir, "cursor.json"),
    fileOf,
    newFileOf,
    pathOf(month, { replacing }) {
      const isInNewFile = replacing.includes(month) && existsSync(newFileOf(month));
      return isInNewFile ? newFileOf(month) : fileOf(month);
    },
    monthsThere() {
      if (!existsSync(dir)) return [];
      const files = readdirSync(dir).filter((name) => MONTH_FILE.test(name));
      return files.map((name) => name.slice(0, 7)).sort();
    },
  };
}

function findFaults(paths: Paths, readCursor: () => Cursor): readonly StoreFault[] {
  const { cursorFile, fileOf, monthsThere } = paths;
  if (existsSync(cursorFile)) return shortMonths(paths, readCursor()).map(damaged);
  const hasRecords = monthsThere().some((month) => sizeOf(fileOf(month)) > 0);
  if (!hasRecords) return [];
  return [damaged(`${cursorFile} is not there, although there are usage records`)];
}

/**
 * Describes the months of which less is there than counts: nothing could be appended where it
 * belongs.
 */
function shortMonths({ fileOf, pathOf }: Paths, cursor: Cursor): string[] {
  const descriptions: string[] = [];
  for (const [month, size] of cursor.months) {
    const actual = sizeOf(pathOf(month, cursor));
    if (size === 0 || actual >= size) continue;
    const found = actual < 0 ? "is not there" : `has ${actual} bytes`;
    descriptions.push(`${fileOf(month)} ${found}, although ${size} bytes of records were written`);
  }
  return descriptions;
}

const damaged = (what: string): StoreFault => ({
  event: "usage_records_damaged",
  detail: `${what}: was it restored from a backup? 'books rebuild' mends it`,
  blocks: true,
});

/** -1 if there is no such file. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;
