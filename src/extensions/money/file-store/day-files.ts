// The files of the file store: `usage/YYYY-MM-DD.jsonl`, one usage record a line, and
// `usage/cursor.json`, which says how far the spend log was copied and how many bytes of each open
// day count. An append takes effect when cursor.json is replaced: bytes that it does not count were
// left by a process that died, and the next append cuts them off.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rename, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { replaceFile, syncToDisk } from "../../scale/data-files/index.ts";
import type { LogCursor } from "../records/index.ts";
import { BooksFault, brokenFile, MENDING, type Days } from "../days/index.ts";

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** What cursor.json says. */
export interface Cursor {
  /** How far the spend log was copied. */
  readonly segments: LogCursor;
  /** How many bytes of each open day count. */
  readonly days: Readonly<Record<string, number>>;
  /** Closed days that a rebuild could not make again: what is left of their files counts. */
  readonly lost?: readonly string[];
}

/** Reads the file, which may not be there yet. Throws a BooksFault if it makes no sense. */
export function readCursor(path: string): Cursor {
  if (!existsSync(path)) return { segments: {}, days: {} };
  const { segments, days, lost = [] } = asObject(parseJson(readFileSync(path, "utf8")));
  const counts = Object.values(asObject(segments)).flatMap((segment) => {
    const { bytes, lines, unsettled } = asObject(segment);
    return [bytes, lines, unsettled];
  });
  const all = [...counts, ...Object.values(asObject(days))];
  if (!segments || !days || all.some((count) => asCount(count) === undefined))
    throw new BooksFault(`${path} cannot be read: ${MENDING}`);
  return { segments, days, lost } as Cursor;
}

async function writeCursor(path: string, cursor: Cursor): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(cursor)}\n`);
}

/** The files of a file store. */
export interface DayFiles {
  /** Their folder. It is made when something is written. */
  readonly dir: string;
  /** Has the sizes of the files of closed days. The cursor has those of open days. */
  readonly closedDays: Days;
}

export const cursorFile = ({ dir }: DayFiles): string => join(dir, "cursor.json");

/** The path of the file of a day, which may not exist. */
export const pathOf = ({ dir }: DayFiles, day: string): string => join(dir, `${day}.jsonl`);

/** The file with the sums of a closed day. */
export const sumsFile = ({ dir }: DayFiles, day: string): string => join(dir, `${day}.sums`);

export const isClosed = ({ closedDays }: DayFiles, day: string): boolean =>
  day <= closedDays.lastDay();

/** -1: there is no such file. */
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? -1;

/** How many bytes of each day with records count. -1: of a lost day no file is left. */
function bytesByDay(files: DayFiles): ReadonlyMap<string, number> {
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

/** How many bytes of the file of a day count; 0 without records. Throws if it has fewer. */
export function bytesOf(files: DayFiles, day: string): number {
  const bytes = Math.max(0, bytesByDay(files).get(day) ?? 0);
  const size = sizeOf(pathOf(files, day));
  if (bytes > 0 && size < bytes) throw new BooksFault(brokenFile(pathOf(files, day), size, bytes));
  return bytes;
}

/** Throws a BooksFault if something must be mended before anything is written. */
export function assertWhole(files: DayFiles): void {
  const there = dayFilesIn(files.dir);
  const hasCursor = existsSync(cursorFile(files));
  if (!hasCursor && there.some((day) => sizeOf(pathOf(files, day)) > 0))
    throw new BooksFault(`${cursorFile(files)} is not there, but usage records are: ${MENDING}`);
  if (!hasCursor) return;
  const known = bytesByDay(files);
  const lost = there.find((day) => !known.has(day) && existsSync(sumsFile(files, day)));
  if (lost !== undefined)
    throw new BooksFault(
      `${files.closedDays.path} has no line of ${lost}, which was closed: ${MENDING}`,
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
  // assertWhole() takes day files without a cursor for damage, so write the cursor first.
  if (!existsSync(file)) await writeCursor(file, cursor);
  const open = Object.entries(cursor.days).filter(([day]) => !isClosed(files, day));
  const days = Object.fromEntries(open);
  for (const [day, text] of texts) {
    const path = pathOf(files, day);
    const size = days[day] ?? 0;
    if (size > 0) await truncate(path, size);
    await writeFile(path, text, { flag: size > 0 ? "a" : "w", mode: 0o600, flush: true });
    days[day] = size + Buffer.byteLength(text);
  }
  await writeCursor(file, { ...cursor, segments, days });
}

/** Notes whether a closed day is lost. */
export async function noteLost(files: DayFiles, day: string, isLost: boolean): Promise<void> {
  const { lost: before = [], ...cursor } = readCursor(cursorFile(files));
  if (before.includes(day) === isLost) return;
  const lost = isLost ? [...before, day] : before.filter((other) => other !== day);
  await writeCursor(cursorFile(files), { ...cursor, lost });
}

/**
 * Moves the cursor alone. A rebuild goes on from all that is there if the one before is lost, or
 * makes no sense.
 */
export async function setSegments(files: DayFiles, segments: LogCursor): Promise<void> {
  const { dir, closedDays } = files;
  const before = cursorOrAll(dir, closedDays.lastDay());
  await writeCursor(cursorFile(files), { ...before, segments });
}

/**
 * The cursor in a folder. If it is lost or makes no sense, all whole lines of the days after the
 * last closed one count. `wrong`: told why, also of a cursor that the system does not let read.
 * Absent: that is thrown, for it may pass.
 */
export function cursorOrAll(
  dir: string,
  lastClosed: string,
  wrong?: (fault: string) => void,
): Cursor {
  const path = join(dir, "cursor.json");
  const there = dayFilesIn(dir);
  try {
    if (there.length > 0 && !existsSync(path)) throw new BooksFault("is not there");
    return readCursor(path);
  } catch (error) {
    if (!wrong && !(error instanceof BooksFault)) throw error;
    wrong?.((error as Error).message);
    const sizes = there
      .filter((day) => day > lastClosed)
      .map((day) => [day, readFileSync(join(dir, `${day}.jsonl`)).lastIndexOf("\n") + 1] as const);
    return { segments: {}, days: Object.fromEntries(sizes) };
  }
}

/**
 * Puts the finished file at `draft`, which has `bytes`, in the place of a day's. Rejects if the day
 * is closed and has more or fewer.
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
  // Only a rebuild changes the size. If it dies before this, only another rebuild goes on.
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
