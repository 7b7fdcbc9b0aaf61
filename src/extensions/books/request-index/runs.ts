// The files of the index by request ids. A run is a file of sorted entries for a part of a month's
// file. Runs are never changed: a run is written beside the others, or in the place of two that it
// merges, so that a reader finds whole ones at any moment. The end of the part is recognised by a
// hash of what stands before it: a month's file that was restored from a backup is another one.
import { hash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { open, rename, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ENTRY_BYTES } from "./entries.ts";

const MAGIC = "cgindex1";
const TAIL_HASH_BYTES = 8;
/** Bytes of a run before its first entry. */
export const HEADER_BYTES = MAGIC.length + TAIL_HASH_BYTES;
/** Enough for the end of one line, whose usage_id no other line has. */
const TAIL_BYTES = 4_096;
/** So many entries are merged in one turn of the event loop. */
const MERGED_AT_ONCE = 4_096;

const RUN_NAME = /^(\d{4}-\d\d)\.(\d+)\.(\d+)-(\d+)\.ids$/;

/** A run, as its name says it. */
export interface Run {
  readonly path: string;
  readonly month: string;
  /** How often the month had been written anew. */
  readonly version: number;
  /** The first byte of the month's file that it covers. */
  readonly from: number;
  /** The first byte that it does not cover any more. */
  readonly to: number;
}

/** The runs in a folder, those of an unfinished write left out. */
export function runsIn(dir: string): Run[] {
  return namesIn(dir).flatMap((name) => {
    const [, month, version, from, to] = RUN_NAME.exec(name) ?? [];
    if (month === undefined) return [];
    const numbers = { version: Number(version), from: Number(from), to: Number(to) };
    return [{ path: join(dir, name), month, ...numbers }];
  });
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Removes a run. Nothing happens if it is gone already. */
export const removeRun = ({ path }: Run): void => rmSync(path, { force: true });

/** The hash of what stands before byte `to` of a month's file. */
export async function tailHash(file: FileHandle, to: number): Promise<Buffer> {
  const length = Math.min(to, TAIL_BYTES);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, to - length);
  const digest = hash("sha256", buffer.subarray(0, bytesRead), "buffer");
  return digest.subarray(0, TAIL_HASH_BYTES);
}

/** Does work on a file that is opened for reading, and closes it. */
export async function withFile<T>(
  path: string,
  work: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path);
  return await work(file).finally(() => file.close());
}

/** Whether a run is whole, and of the file at `path`. */
export async function isRunOf(run: Run, path: string): Promise<boolean> {
  const tail = await withFile(path, (file) => tailHash(file, run.to));
  return await withFile(run.path, async (index) => {
    const { size } = await index.stat();
    const { buffer } = await index.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    const isWhole = (size - HEADER_BYTES) % ENTRY_BYTES === 0;
    return isWhole && buffer.equals(Buffer.concat([Buffer.from(MAGIC), tail]));
  });
}

/** What a run is called, and what its header says. */
export interface RunPlan extends Omit<Run, "path"> {
  readonly dir: string;
  readonly tail: Buffer;
}

/** Writes a run. `write` appends its sorted entries. */
export async function writeRun(
  { dir, tail, month, version, from, to }: RunPlan,
  write: (file: FileHandle) => Promise<void>,
): Promise<Run> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, `${month}.${version}.${from}-${to}.ids`);
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.appendFile(Buffer.concat([Buffer.from(MAGIC), tail]));
    await write(file);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  return { path, month, version, from, to };
}

/** Writes the run of two neighbours, then removes them. */
export async function mergeRuns(dir: string, first: Run, second: Run): Promise<Run> {
  const { month, version, from } = first;
  const run = await withFile(first.path, (a) =>
    withFile(second.path, async (b) => {
      const { buffer } = await b.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
      const tail = buffer.subarray(MAGIC.length);
      const plan = { dir, month, version, from, to: second.to, tail };
      return await writeRun(plan, (file) => mergeEntries(a, b, file));
    }),
  );
  removeRun(first);
  removeRun(second);
  return run;
}

/** Entries of a run that is read from its beginning to its end. */
interface Cursor {
  readonly file: FileHandle;
  entries: Buffer;
  at: number;
  position: number;
}

async function refill(cursor: Cursor): Promise<void> {
  if (cursor.at < cursor.entries.length) return;
  const length = MERGED_AT_ONCE * ENTRY_BYTES;
  const { buffer, bytesRead } = await cursor.file.read(
    Buffer.alloc(length),
    0,
    length,
    cursor.position,
  );
  cursor.position += bytesRead;
  cursor.entries = buffer.subarray(0, bytesRead);
  cursor.at = 0;
}

async function mergeEntries(a: FileHandle, b: FileHandle, to: FileHandle): Promise<void> {
  const cursorOf = (file: FileHandle): Cursor => ({
    file,
    entries: Buffer.alloc(0),
    at: 0,
    position: HEADER_BYTES,
  });
  const [left, right] = [cursorOf(a), cursorOf(b)];
  for (;;) {
    await refill(left);
    await refill(right);
    const merged = mergeBuffered(left, right);
    if (merged.length === 0) return;
    await to.appendFile(merged);
  }
}

/** Merges until one of both has to be read on. A cursor without entries is at its end. */
function mergeBuffered(left: Cursor, right: Cursor): Buffer {
  const merged: Buffer[] = [];
  const take = (cursor: Cursor, end: number): void => {
    if (end > cursor.at) merged.push(cursor.entries.subarray(cursor.at, end));
    cursor.at = end;
  };
  while (left.at < left.entries.length && right.at < right.entries.length) {
    const isLeft = compareAt(left, right) <= 0;
    const cursor = isLeft ? left : right;
    let end = cursor.at;
    // Neighbours are taken together: a piece for each entry would take longer than the comparison.
    do end += ENTRY_BYTES;
    while (end < cursor.entries.length && isBefore(cursor.entries, end, isLeft ? right : left));
    take(cursor, end);
  }
  if (left.entries.length === 0) take(right, right.entries.length);
  if (right.entries.length === 0) take(left, left.entries.length);
  return Buffer.concat(merged);
}

const compareAt = (a: Cursor, b: Cursor): number =>
  a.entries.compare(b.entries, b.at, b.at + ENTRY_BYTES, a.at, a.at + ENTRY_BYTES);

const isBefore = (entries: Buffer, at: number, other: Cursor): boolean =>
  entries.compare(other.entries, other.at, other.at + ENTRY_BYTES, at, at + ENTRY_BYTES) < 0;
