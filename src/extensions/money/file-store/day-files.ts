// The files of the file store: `usage/YYYY-MM-DD.jsonl`, one usage record a line, and
// `usage/cursor.json`, which says how far the spend log was copied and how many bytes of each open
// day count. An append takes effect when cursor.json is replaced: bytes that it does not count were
// left by a process that died, and the next append cuts them off.
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { rename, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile, syncToDisk } from "../../scale/data-files/index.ts";
import type { LogCursor } from "../records/index.ts";
import { brokenFile, MENDING, type Days } from "../days/index.ts";
import { faultIn, readCursor, readCursorIfWhole, type Cursor } from "./cursor.ts";

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** The files in the folder of the file store. */
export interface DayFiles {
  /** Reads cursor.json anew: another process may be the one that copies. Throws if it is broken. */
  read(): Cursor;
  /** The days with records, in their order. */
  days(): readonly string[];
  /** Whether a day is closed. */
  isClosed(day: string): boolean;
  /** The path of the file of a day, which may not exist. */
  pathOf(day: string): string;
  /** The path of another file in the same folder. */
  besideOf(name: string): string;
  /** How many bytes of the file of a day count; 0 without records. Throws if it has fewer. */
  bytesOf(day: string): number;
  /** What must be mended before anything is written, a sentence each. Empty: nothing. */
  damage(): readonly string[];
  /** Appends texts to days, then moves the cursor. */
  append(texts: ReadonlyMap<string, string>, segments: LogCursor): Promise<void>;
  /** Moves the cursor alone, even if the one before is broken. */
  setSegments(segments: LogCursor): Promise<void>;
  /**
   * Puts the finished file at `draft`, which has `bytes`, in the place of a day's. Rejects if the
   * day is closed and has more or fewer.
   */
  replace(day: string, draft: string, bytes: number): Promise<void>;
}

/**
 * The files in a folder, which is made when something is written. `closedDays` has the sizes of the
 * files of closed days; the cursor has those of open days.
 */
async function writeCursor(path: string, cursor: Cursor): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(cursor)}\n`);
}

/** -1: there is no such file. */
const bytesIn = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;

/** Adds a text to a file of which the first `size` bytes count. */
async function appendText(path: string, text: string, size: number): Promise<void> {
  if (size > 0) await truncate(path, size);
  const flag = size > 0 ? "a" : "w";
  await writeFile(path, text, { flag, mode: 0o600, flush: true });
}

export function createDayFiles(dir: string, closedDays: Days): DayFiles {
  const cursorFile = join(dir, "cursor.json");
  const read = (): Cursor => readCursor(cursorFile);
  const isClosed = (day: string): boolean => day <= closedDays.lastDay();
  const pathOf = (day: string): string => join(dir, `${day}.jsonl`);
  const sizeOf = (day: string): number => bytesIn(pathOf(day));

  /** How many bytes of each day with records count. */
  function bytesByDay(): ReadonlyMap<string, number> {
    const bytes = new Map<string, number>();
    for (const { closed: line } of closedDays.all())
      if (line.records > 0) bytes.set(line.day, line.file_bytes);
    for (const [day, size] of Object.entries(read().days)) if (!isClosed(day)) bytes.set(day, size);
    return bytes;
  }

  function damage(): readonly string[] {
    try {
      if (!existsSync(cursorFile))
        return dayFilesIn(dir).some((day) => sizeOf(day) > 0)
          ? [brokenFile(cursorFile, -1, 0)]
          : [];
      const known = bytesByDay();
      const wasClosed = (day: string): boolean => existsSync(join(dir, `${day}.sums`));
      const lost = dayFilesIn(dir).find((day) => !known.has(day) && wasClosed(day));
      if (lost !== undefined)
        return [`${closedDays.path} has no line of ${lost}, which was closed: ${MENDING}`];
      return [...known].flatMap(([day, bytes]) => {
        const size = sizeOf(day);
        const isWhole = isClosed(day) ? size === bytes : size >= bytes;
        return isWhole ? [] : [brokenFile(pathOf(day), size, bytes)];
      });
    } catch (error) {
      return [faultIn(error)];
    }
  }

  const write = (cursor: Cursor): Promise<void> => writeCursor(cursorFile, cursor);

  return {
    read,
    days: () => [...bytesByDay().keys()].sort(),
    isClosed,
    pathOf,
    besideOf: (name) => join(dir, name),
    bytesOf(day) {
      const bytes = closedDays.of(day)?.closed.file_bytes ?? read().days[day] ?? 0;
      const size = sizeOf(day);
      if (bytes > 0 && size < bytes) throw new Error(brokenFile(pathOf(day), size, bytes));
      return bytes;
    },
    damage,
    async append(texts, segments) {
      const cursor = read();
      // damage() takes day files without a cursor for damage, so write the cursor first.
      if (!existsSync(cursorFile)) await write(cursor);
      const open = Object.entries(cursor.days).filter(([day]) => !isClosed(day));
      const days = Object.fromEntries(open);
      for (const [day, text] of texts) {
        const size = days[day] ?? 0;
        await appendText(pathOf(day), text, size);
        days[day] = size + Buffer.byteLength(text);
      }
      await write({ segments, days });
    },
    setSegments: (segments) => write({ ...readCursorIfWhole(cursorFile), segments }),
    async replace(day, draft, bytes) {
      const known = closedDays.of(day)?.closed.file_bytes ?? bytes;
      if (bytes !== known)
        throw new Error(`${day} was closed with ${known} bytes of records, not ${bytes}`);
      await rename(draft, pathOf(day));
      await syncToDisk(dir);
      const cursor = readCursorIfWhole(cursorFile);
      // Only a rebuild changes the size. If it dies before this, only another rebuild goes on.
      if (!isClosed(day) && cursor.days[day] !== bytes)
        await write({ ...cursor, days: { ...cursor.days, [day]: bytes } });
    },
  };
}

/** The days that have a file in a folder. */
export function dayFilesIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => DAY_FILE.test(name))
    .map((name) => name.slice(0, 10));
}
