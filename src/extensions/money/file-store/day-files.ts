// The files of the file store: `usage/YYYY-MM-DD.jsonl`, one usage record a line, and
// `usage/cursor.json`, which has how far the spend log was copied and how many bytes of each open
// day count. An append takes effect when cursor.json is replaced. A process that dies before that
// leaves bytes that do not count, and the next append cuts them off.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rename, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { replaceFile, syncToDisk, writeError } from "../../scale/data-files/index.ts";
import type { LogCursor } from "../records/index.ts";
import { BooksFault, brokenFile, REPAIR, type Days } from "../days/index.ts";

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** The content of cursor.json. */
export interface Cursor {
  /** How far the spend log was copied. */
  readonly segments: LogCursor;
  /** How many bytes of each open day count. */
  readonly days: Readonly<Record<string, number>>;
  /** Closed days that a rebuild could not make again: all bytes of their files count. */
  readonly lost?: readonly string[];
}

/** Reads the file, which may not exist yet. Throws a BooksFault if it is malformed. */
export function readCursor(path: string): Cursor {
  if (!existsSync(path)) return { segments: {}, days: {} };
  const { segments, days, lost = [] } = asObject(parseJson(readFileSync(path, "utf8")));
  const counts = Object.values(asObject(segments)).flatMap((segment) => {
    const { bytes, lines, unsettled } = asObject(segment);
    return [bytes, lines, unsettled];
  });
  const all = [...counts, ...Object.values(asObject(days))];
  if (!segments || !days || all.some((count) => asCount(count) === undefined))
    throw new BooksFault(`${path} cannot be read: ${REPAIR}`);
  return { segments, days, lost } as Cursor;
}

async function writeCursor(path: string, cursor: Cursor): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(cursor)}\n`);
}

/** The files of a file store. */
export interface DayFiles {
  /** Their folder. The first write makes it. */
  readonly dir: string;
  /** States the sizes of the files of closed days. The cursor states those of open days. */
  readonly closedDays: Days;
}

export const cursorFile = ({ dir }: DayFiles): string => join(dir, "cursor.json");

/** The path of the file of a day, which may not exist. */
export const pathOf = ({ dir }: DayFiles, day: string): string => join(dir, `${day}.jsonl`);

/** The file with the sums of a closed day. */
export const sumsFile = ({ dir }: DayFiles, day: string): string => join(dir, `${day}.sums`);

export const isClosed = ({ closedDays }: DayFiles, day: string): boolean =>
  day <= closedDays.lastDay();

/** The size of a file in bytes. -1: there is no such file. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;

/** How many bytes count, for each day with records. -1: a lost day whose file is gone. */
export function bytesByDay(files: DayFiles): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>();
  const { days, lost = [] } = readCursor(cursorFile(files));
  for (const { closed } of files.closedDays.all())
    if (closed.records > 0) bytes.set(closed.day, closed.file_bytes);
  for (const day of lost) bytes.set(day, sizeOf(pathOf(files, day)));
  for (const [day, size] of Object.entries(days)) if (!isClosed(files, day)) bytes.set(day, size);
  return bytes;
}

/** The days with records, in their order. */
export const daysOf = (files: DayFiles): readonly string[] =>
  [...bytesByDay(files)].flatMap(([day, bytes]) => (bytes > 0 ? [day] : [])).sort();

/** How many bytes of a day's file count. 0: no records. Throws a BooksFault if it is shorter. */
export function bytesOf(files: DayFiles, day: string, known = bytesByDay(files)): number {
  const bytes = Math.max(0, known.get(day) ?? 0);
  const size = sizeOf(pathOf(files, day));
  if (bytes > 0 && size < bytes) throw new BooksFault(brokenFile(pathOf(files, day), size, bytes));
  return bytes;
}

/** Throws a BooksFault if the files must be repaired before anything is written. */
export function assertWhole(files: DayFiles): void {
  const daysWithFile = dayFilesIn(files.dir);
  const hasCursor = existsSync(cursorFile(files));
  if (!hasCursor && daysWithFile.some((day) => sizeOf(pathOf(files, day)) > 0))
    throw new BooksFault(`${cursorFile(files)} is not there, but usage records are: ${REPAIR}`);
  if (!hasCursor) return;
  const known = bytesByDay(files);
  const lost = daysWithFile.find((day) => !known.has(day) && existsSync(sumsFile(files, day)));
  if (lost !== undefined)
    throw new BooksFault(
      `${files.closedDays.path} has no line of ${lost}, which was closed: ${REPAIR}`,
    );
  for (const [day, bytes] of known) {
    const size = sizeOf(pathOf(files, day));
    const isWhole = isClosed(files, day) ? size === bytes : size >= bytes;
    if (!isWhole) throw new BooksFault(brokenFile(pathOf(files, day), size, bytes));
  }
}

/** Appends texts to days, then moves the cursor. */
export async function appendTexts(
  files: DayFiles,
  texts: ReadonlyMap<string, string>,
  segments: LogCursor,
): Promise<void> {
  const file = cursorFile(files);
  const cursor = readCursor(file);
  // assertWhole() treats day files without a cursor as damage, so write the cursor first.
  if (!existsSync(file)) await writeCursor(file, cursor);
  const open = Object.entries(cursor.days).filter(([day]) => !isClosed(files, day));
  const days = Object.fromEntries(open);
  for (const [day, text] of texts) {
    const path = pathOf(files, day);
    const size = days[day] ?? 0;
    if (size > 0) await truncate(path, size);
    const options = { flag: size > 0 ? "a" : "w", mode: 0o600, flush: true };
    await writeFile(path, text, options).catch((error: Error) => {
      throw writeError(error, path);
    });
    days[day] = size + Buffer.byteLength(text);
  }
  await writeCursor(file, { ...cursor, segments, days });
}

/** Notes in the cursor whether a closed day is lost. */
export async function noteLost(files: DayFiles, day: string, isLost: boolean): Promise<void> {
  const { lost: before = [], ...cursor } = readCursor(cursorFile(files));
  if (before.includes(day) === isLost) return;
  const lost = isLost ? [...before, day] : before.filter((other) => other !== day);
  await writeCursor(cursorFile(files), { ...cursor, lost });
}

/** Sets how far the log was copied, even if cursor.json is lost or malformed. */
export async function setSegments(files: DayFiles, segments: LogCursor): Promise<void> {
  const { dir, closedDays } = files;
  const before = cursorOrAll(dir, closedDays.lastDay());
  await writeCursor(cursorFile(files), { ...before, segments });
}

/**
 * The cursor in a folder. If it is lost or malformed, all whole lines of open days count, and
 * `onFault` is called with the reason. A read error, which may be temporary, is treated in the same
 * way if there is an `onFault`, and thrown if there is none.
 */
export function cursorOrAll(
  dir: string,
  lastClosed: string,
  onFault?: (fault: string) => void,
): Cursor {
  const path = join(dir, "cursor.json");
  const days = dayFilesIn(dir);
  try {
    if (days.length > 0 && !existsSync(path)) throw new BooksFault("is not there");
    return readCursor(path);
  } catch (error) {
    if (!onFault && !(error instanceof BooksFault)) throw error;
    onFault?.((error as Error).message);
    const sizes = days
      .filter((day) => day > lastClosed)
      .map((day) => [day, readFileSync(join(dir, `${day}.jsonl`)).lastIndexOf("\n") + 1] as const);
    return { segments: {}, days: Object.fromEntries(sizes) };
  }
}

/**
 * Replaces the file of a day by the finished file at `draft`, of `bytes` bytes. Rejects if the day
 * was closed with another size.
 */
export async function replaceDayFile(
  files: DayFiles,
  day: string,
  draft: string,
  bytes: number,
): Promise<void> {
  const known = files.closedDays.of(day)?.closed.file_bytes ?? bytes;
  if (bytes !== known)
    throw new Error(`${day} was closed with ${known} bytes of records, not ${bytes}`);
  await rename(draft, pathOf(files, day));
  await syncToDisk(files.dir);
  await noteLost(files, day, false);
  const cursor = readCursor(cursorFile(files));
  // Only a rebuild changes the size. If it dies here, the books stay blocked until the next one.
  if (!isClosed(files, day) && cursor.days[day] !== bytes)
    await writeCursor(cursorFile(files), { ...cursor, days: { ...cursor.days, [day]: bytes } });
}

/** The days that have a file in a folder. */
export function dayFilesIn(dir: string): string[] {
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((name) => DAY_FILE.test(name))
    .map((name) => name.slice(0, 10));
}
