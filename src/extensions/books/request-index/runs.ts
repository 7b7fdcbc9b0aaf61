// The files of the index by request ids. A run is a file of sorted entries for a part of a month's
// file. Runs are never changed: a run is written beside the others, or in the place of two that it
// merges, so that a reader finds whole ones at any moment. The end of the part is recognised by a
// hash of what stands before it: a month's file that was restored from a backup is another one.
import { hash } from "node:crypto";
import { fstatSync, mkdirSync, readdirSync } from "node:fs";
import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ENTRY_BYTES } from "./entries.ts";
import { readAt, withDescriptor } from "./read-file.ts";

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
  /** Path of its file. */
  readonly path: string;
  /** `YYYY-MM`, in UTC. */
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

/**
 * Removes a run. Nothing happens if it is gone already. The file system may take some time to free
 * a large file, for which the event loop must not wait.
 */
export const removeRun = ({ path }: Run): Promise<void> => rm(path, { force: true });

/** The hash of what stands before byte `to` of a month's file. */
export async function tailHash(fd: number, to: number): Promise<Buffer> {
  const length = Math.min(to, TAIL_BYTES);
  const digest = hash("sha256", await readAt(fd, to - length, length), "buffer");
  return digest.subarray(0, TAIL_HASH_BYTES);
}

/** Whether a run is whole, and of the file at `path`. */
export async function isRunOf(run: Run, path: string): Promise<boolean> {
  const tail = await withDescriptor(path, (fd) => tailHash(fd, run.to));
  return await withDescriptor(run.path, async (fd) => {
    const isWhole = (fstatSync(fd).size - HEADER_BYTES) % ENTRY_BYTES === 0;
    const header = Buffer.concat([Buffer.from(MAGIC), tail]);
    return isWhole && header.equals(await readAt(fd, 0, HEADER_BYTES));
  });
}

/** What a run is called, and what its header says. */
export interface RunPlan extends Omit<Run, "path"> {
  /** The folder of the runs. It is made if it is not there. */
  readonly dir: string;
  /** As tailHash() makes it, of what stands before byte `to` of the month's file. */
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
  const run = await withDescriptor(first.path, (a) =>
    withDescriptor(second.path, async (b) => {
      const tail = (await readAt(b, 0, HEADER_BYTES)).subarray(MAGIC.length);
      const plan = { dir, month, version, from, to: second.to, tail };
      return await writeRun(plan, (file) => mergeEntries(a, b, file));
    }),
  );
  await removeRun(first);
  await removeRun(second);
  return run;
}

/** Entries of a run that is read from its beginning to its end. */
interface Cursor {
  readonly fd: number;
  entries: Buffer;
  /** The first byte of `entries` that is not merged yet. */
  at: number;
  /** The byte of the file where to read on. */
  position: number;
}

const cursorOf = (fd: number): Cursor => ({
  fd,
  entries: Buffer.alloc(0),
  at: 0,
  position: HEADER_BYTES,
});

async function refill(cursor: Cursor): Promise<void> {
  if (cursor.at < cursor.entries.length) return;
  const bytes = await readAt(cursor.fd, cursor.position, MERGED_AT_ONCE * ENTRY_BYTES);
  cursor.entries = bytes.subarray(0, bytes.length - (bytes.length % ENTRY_BYTES));
  cursor.position += cursor.entries.length;
  cursor.at = 0;
}

async function mergeEntries(a: number, b: number, to: FileHandle): Promise<void> {
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
  const merged = Buffer.allocUnsafe(remaining(left) + remaining(right));
  let length = 0;
  while (remaining(left) > 0 && remaining(right) > 0) {
    const cursor = isFirst(left, right) ? left : right;
    copyEntry(cursor, merged, length);
    cursor.at += ENTRY_BYTES;
    length += ENTRY_BYTES;
  }
  if (left.entries.length === 0) length += copyRest(right, merged, length);
  if (right.entries.length === 0) length += copyRest(left, merged, length);
  return merged.subarray(0, length);
}

/** Copies what a cursor has left. Returns the number of bytes. */
function copyRest(cursor: Cursor, to: Buffer, offset: number): number {
  const copied = cursor.entries.copy(to, offset, cursor.at);
  cursor.at = cursor.entries.length;
  return copied;
}

const remaining = ({ entries, at }: Cursor): number => entries.length - at;

/** Whether the next entry of `a` stands before that of `b`. Most differ in their first bytes. */
function isFirst(a: Cursor, b: Cursor): boolean {
  for (let byte = 0; byte < ENTRY_BYTES; byte += 1) {
    const difference = a.entries[a.at + byte]! - b.entries[b.at + byte]!;
    if (difference !== 0) return difference < 0;
  }
  return true;
}

/** Byte by byte: Buffer.copy() takes longer to be called than to copy so few. */
function copyEntry({ entries, at }: Cursor, to: Buffer, offset: number): void {
  for (let byte = 0; byte < ENTRY_BYTES; byte += 1) to[offset + byte] = entries[at + byte]!;
}
