// The files of the file store: `usage/YYYY-MM.jsonl`, one usage record a line, and `usage/cursor.json`, which says how much of each
// counts and how far each segment of the spend log has been copied. Replacing cursor.json is the only moment at which anything
// changes: what a sync that dies has appended the next one cuts off, and months that were written anew beside (`.new`) take
// effect when cursor.json names them, whoever then gets to rename them.
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asCount, asObject } from "../../core/schema/untrusted-json.ts";
import { readJson, replaceFile, syncToDisk } from "./files.ts";
import type { StoreFault } from "./usage-store.ts";
import type { Mark } from "./segments.ts";

/** The usage records cannot be written to, or not be read in full, until somebody has mended them. */
export class BooksFault extends Error {}

/** What cursor.json says. */
export interface Cursor {
  readonly marks: readonly Mark[];
  /** Bytes that count, by month. */
  readonly months: ReadonlyMap<string, number>;
  /** How often each month has been written anew: what was remembered of one is void then. */
  readonly rewritten: ReadonlyMap<string, number>;
  /** Months whose new files, beside the old ones, count already. */
  readonly replacing: readonly string[];
}

const isMonthFile = (name: string): boolean => /^\d{4}-\d\d\.jsonl$/.test(name);
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;

/** The marks of a segment; of a version that knew names only, a number. */
function marksOf(segment: string, value: unknown): Mark[] {
  const none = { segment, identity: null, tail: "", recovered: false };
  if (asCount(value) !== undefined) return [{ ...none, position: Number(value) }];
  const list = Array.isArray(value) ? (value as unknown[]) : [];
  return list.map(asObject).map(({ identity, position, tail, recovered }) => ({
    segment,
    identity: String(identity),
    position: asCount(position) ?? 0,
    tail: String(tail),
    recovered: recovered === true,
  }));
}

function textOfCursor({ marks, months, rewritten, replacing }: Cursor): string {
  const segments = new Map<string, Omit<Mark, "segment">[] | number>();
  for (const { segment, ...mark } of marks) {
    const list = segments.get(segment);
    if (mark.identity === null) segments.set(segment, mark.position);
    else segments.set(segment, [...(Array.isArray(list) ? list : []), mark]);
  }
  return JSON.stringify({
    segments: Object.fromEntries(segments),
    months: Object.fromEntries(months),
    ...(rewritten.size > 0 && { rewritten: Object.fromEntries(rewritten) }),
    ...(replacing.length > 0 && { replacing }),
  });
}

export function createMonthFiles(dir: string) {
  const cursorFile = join(dir, "cursor.json");
  const fileOf = (month: string) => join(dir, `${month}.jsonl`);
  const newFileOf = (month: string) => `${fileOf(month)}.new`;

  /** Read anew each time: another process may be the one that syncs. */
  function readCursor(): Cursor {
    const text = asObject(readJson(cursorFile, {}, ["ENOENT"]));
    const counts = (value: unknown) =>
      new Map(Object.entries(asObject(value)).map(([name, count]) => [name, asCount(count) ?? 0]));
    return {
      marks: Object.entries(asObject(text["segments"])).flatMap(([name, value]) =>
        marksOf(name, value),
      ),
      months: counts(text["months"]),
      rewritten: counts(text["rewritten"]),
      replacing: Array.isArray(text["replacing"]) ? text["replacing"].map(String) : [],
    };
  }

  /** Where a month's records are at the moment. */
  function pathOf(month: string, { replacing }: Cursor): string {
    const inNewFile = replacing.includes(month) && existsSync(newFileOf(month));
    return inNewFile ? newFileOf(month) : fileOf(month);
  }

  /** Months of which less is there than counts: nothing could be appended where it belongs. */
  function shortMonths(cursor: Cursor): string[] {
    const short = [...cursor.months].filter(
      ([month, size]) => size > 0 && sizeOf(pathOf(month, cursor)) < size,
    );
    return short.map(([month, size]) => {
      const actual = sizeOf(pathOf(month, cursor));
      const found = actual < 0 ? "is not there" : `has ${actual} bytes`;
      return `${fileOf(month)} ${found}, although ${size} bytes of records were written`;
    });
  }

  function faults(): StoreFault[] {
    const advice = "was it restored from a backup? 'books rebuild' mends it";
    const blocking = (detail: string) => ({
      event: "usage_records_damaged",
      detail: `${detail}: ${advice}`,
      blocks: true,
    });
    if (existsSync(cursorFile)) return shortMonths(readCursor()).map(blocking);
    const records = monthsThere().filter((month) => sizeOf(fileOf(month)) > 0);
    if (records.length === 0) return [];
    return [blocking(`${cursorFile} is not there, although there are usage records`)];
  }

  /** Months that have a file, whatever the cursor says. */
  const monthsThere = (): string[] =>
    existsSync(dir)
      ? readdirSync(dir)
          .filter(isMonthFile)
          .map((name) => name.slice(0, 7))
          .sort()
      : [];

  const writeCursor = (cursor: Cursor): Promise<void> =>
    replaceFile(cursorFile, textOfCursor(cursor));

  /** Gives months that were written anew their names, if a process died before it came to that. Resolves with the cursor in force. */
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
    pathOf,
    faults,
    monthsThere,
    newFileOf,
    hasCursor: (): boolean => existsSync(cursorFile),

    /** Appends to the months, then moves the cursor. Throws a BooksFault where that would not continue what is there. */
    async append(texts: ReadonlyMap<string, string>, marks: (old: Cursor) => readonly Mark[]) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const [fault] = faults();
      if (fault) throw new BooksFault(fault.detail);
      const cursor = await finishReplacing();
      // Months without a cursor are a fault, so it has to be there before the first of them.
      if (!existsSync(cursorFile)) await writeCursor(cursor);
      const months = new Map(cursor.months);
      for (const [month, text] of texts) {
        const size = months.get(month) ?? 0;
        // Only ever shortens: a file that is too short is a fault.
        if (size > 0) await truncate(fileOf(month), size);
        const flag = size > 0 ? "a" : "w";
        await writeFile(fileOf(month), text, { flag, mode: 0o600, flush: true });
        months.set(month, size + Buffer.byteLength(text));
      }
      await writeCursor({ ...cursor, months, marks: marks(cursor) });
    },

    /** Puts the new files of the `rewritten` months, which are whole and on the disk, in the place of the old ones: all or none.
     * `sizes`: how much of each month counts from then on. */
    async replace(next: {
      readonly sizes: ReadonlyMap<string, number>;
      readonly rewritten: ReadonlyMap<string, number>;
      readonly marks: readonly Mark[];
    }) {
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

export type MonthFiles = ReturnType<typeof createMonthFiles>;
