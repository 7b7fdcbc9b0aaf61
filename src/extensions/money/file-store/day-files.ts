// The files of the file store: `usage/YYYY-MM-DD.jsonl`, one usage record a line, and
// `usage/cursor.json`, which says how far the spend log was copied and how many bytes of each open
// day count. Replacing cursor.json is the moment at which anything changes: what a process that
// died has appended does not count, and the next one cuts it off.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { replaceFile, syncToDisk } from "../../data-files/index.ts";
import type { LogCursor, SegmentCursor, StoreFault } from "../records/index.ts";
import { brokenFile, type Days } from "../days/index.ts";

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** What cursor.json says. */
export interface Cursor {
  /** How far the spend log was copied. */
  readonly segments: LogCursor;
  /** How many bytes of each open day count. */
  readonly days: Readonly<Record<string, number>>;
}

/** The files in the folder of the file store. */
export interface DayFiles {
  /** Reads cursor.json anew, because another process may be the one that copies. */
  read(): Cursor;
  /** The file of a day. */
  pathOf(day: string): string;
  /** A file beside it, of another kind. */
  besideOf(name: string): string;
  /** What must be mended before anything is written. */
  faults(): readonly StoreFault[];
  /** Appends to days, then moves the cursor. */
  append(texts: ReadonlyMap<string, string>, segments: LogCursor): Promise<void>;
  /** Moves the cursor alone. */
  setSegments(segments: LogCursor): Promise<void>;
  /** Puts the finished file at `path` in the place of a day's. */
  replace(day: string, path: string): Promise<void>;
}

/** What a fault says of a file that cannot be read. */
const UNREADABLE = "stop the gateway, restore data_dir, run 'books rebuild' and start again";

/**
 * The files in a folder, which is made when something is written. Of the days that are closed
 * `closed` says what their files have; the cursor names only later ones.
 */
export function createDayFiles(dir: string, closed: Days): DayFiles {
  const cursorFile = join(dir, "cursor.json");
  const pathOf = (day: string): string => join(dir, `${day}.jsonl`);
  const hasRecords = (day: string): boolean => statSync(pathOf(day)).size > 0;
  let known: { readonly text: string; readonly cursor: Cursor } | undefined;

  function read(): Cursor {
    const text = existsSync(cursorFile) ? readFileSync(cursorFile, "utf8") : "{}";
    if (known?.text !== text) known = { text, cursor: parseCursor(text, cursorFile) };
    return known.cursor;
  }

  /** What is wrong with the file of a day that has, or at least has, so many bytes. */
  function damageOf(day: string, bytes: number, isExact: boolean): string[] {
    const size = statSync(pathOf(day), { throwIfNoEntry: false })?.size ?? -1;
    const isWhole = isExact ? size === bytes : size >= bytes;
    return isWhole ? [] : [brokenFile(pathOf(day), size, bytes)];
  }

  function damage(): string[] {
    if (!existsSync(cursorFile)) {
      const isLost = dayFilesIn(dir).some((day) => hasRecords(day));
      return isLost ? [brokenFile(cursorFile, -1, 0)] : [];
    }
    try {
      const finished = closed.all().filter((line) => line.closed.records > 0);
      const last = closed.lastDay();
      return [
        ...finished.flatMap((line) => damageOf(line.closed.day, line.closed.file_bytes, true)),
        ...Object.entries(read().days).flatMap(([day, bytes]) =>
          day > last ? damageOf(day, bytes, false) : [],
        ),
      ];
    } catch (error) {
      // What the system says of a file may pass; a file that makes no sense stays as it is.
      if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
      return [(error as Error).message];
    }
  }

  /** The cursor that a rebuild goes on from: nothing, if it cannot be read. */
  function readAsFarAsPossible(): Cursor {
    try {
      return read();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== undefined) throw error;
      return { segments: {}, days: {} };
    }
  }

  async function write(cursor: Cursor): Promise<void> {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    await replaceFile(cursorFile, `${JSON.stringify(cursor)}\n`);
  }

  return {
    read,
    pathOf,
    besideOf: (name) => join(dir, name),
    faults: () =>
      damage().map((detail) => ({ event: "usage_records_damaged", detail, blocks: true })),
    async append(texts, segments) {
      const cursor = read();
      // Days without a cursor are a fault, so the cursor has to be there before the first day.
      if (!existsSync(cursorFile)) await write(cursor);
      const last = closed.lastDay();
      const days = Object.fromEntries(Object.entries(cursor.days).filter(([day]) => day > last));
      for (const [day, text] of texts) {
        const size = days[day] ?? 0;
        if (size > 0) await truncate(pathOf(day), size);
        const flag = size > 0 ? "a" : "w";
        await writeFile(pathOf(day), text, { flag, mode: 0o600, flush: true });
        days[day] = size + Buffer.byteLength(text);
      }
      await write({ segments, days });
    },
    async setSegments(segments) {
      await write({ ...readAsFarAsPossible(), segments });
    },
    async replace(day, path) {
      const { size } = statSync(path);
      const cursor = readAsFarAsPossible();
      const { [day]: before = 0, ...others } = cursor.days;
      // Until the rename the old file counts, and after it the new one: the smaller size is true of
      // both.
      await write({ ...cursor, days: { ...others, [day]: Math.min(size, before) } });
      await rename(path, pathOf(day));
      await syncToDisk(dir);
      await write({ ...cursor, days: { ...others, [day]: size } });
    },
  };
}

/**
 * The cursor of the file store in a folder. Undefined: it has none. Throws if the file is not what
 * this module writes.
 */
export function readCursor(dir: string): Cursor | undefined {
  const path = join(dir, "cursor.json");
  return existsSync(path) ? parseCursor(readFileSync(path, "utf8"), path) : undefined;
}

/** The days that have a file in a folder. */
export function dayFilesIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => DAY_FILE.test(name))
    .map((name) => name.slice(0, 10));
}

/** Throws if the text is not what this module writes. */
function parseCursor(text: string, path: string): Cursor {
  const json = asObject(parseJson(text));
  if (text !== "{}" && !(json["segments"] && json["days"]))
    throw new Error(`${path} cannot be read: ${UNREADABLE}`);
  const segments = Object.entries(asObject(json["segments"])).map(([name, value]) => {
    const { bytes, lines, unsettled } = asObject(value);
    return [name, numbers(path, { bytes, lines, unsettled })] as const;
  });
  const days = numbers(path, asObject(json["days"]));
  return { segments: Object.fromEntries(segments) as Record<string, SegmentCursor>, days };
}

function numbers(path: string, values: Record<string, unknown>): Record<string, number> & never {
  for (const [name, value] of Object.entries(values))
    if (asCount(value) === undefined)
      throw new Error(`${path}: ${name} is no count: ${UNREADABLE}`);
  return values as never;
}
