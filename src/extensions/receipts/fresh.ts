// Requests that are settled and not yet in the usage records. Their settle lines stand at the ends
// of the segments of the spend log, those of other processes included. Each process remembers where
// in the segments the lines of an id are, and before each search reads what has come since the last
// one. What the usage records have is forgotten.
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Mark, RequestQuery } from "../usage-records/index.ts";
import {
  byIdentity,
  claimFileOf,
  isSegmentName,
  jsonTextIn,
  parseSpendLine,
  type BooksFiles,
  type SettleRecord,
} from "../books/index.ts";

/** So many bytes are read at once: some hundred requests. */
const BLOCK_BYTES = 512 * 1024;
/** A line is read with so many bytes, and with more if it is longer. */
const LINE_BYTES = 4 * 1024;
const NEWLINE = 10;
/** How often it is asked what the usage records have, in milliseconds. */
const MARKS_MS = 2_000;
const SETTLE = '{"type":"settle"';

/** The settled requests that are not copied yet. */
export interface FreshRequests {
  /** Reads what has been settled since the last call. */
  catchUp(): Promise<void>;
  /**
   * The settle lines of the latest requests with an id: of each segment those of at most `limit`. A
   * request may have several lines.
   */
  find(query: RequestQuery): Promise<readonly SettleRecord[]>;
}

/** The settle lines of some bytes of a segment. */
interface Block {
  /** Where they end. */
  readonly end: number;
  /** Where the lines of an account's request id begin, by keyOf(). */
  readonly offsets: ReadonlyMap<string, readonly number[]>;
}

/** What is known of a segment. */
interface Tail {
  /** Tells the file from another one of the same name. */
  readonly inode: number;
  /** How far it was read, in bytes. */
  position: number;
  blocks: Block[];
  /** Nobody writes it any more, and it was read to its end. */
  finished: boolean;
}

/** The fresh requests of some books. Nothing is read before the first call. */
export function createFreshRequests(books: BooksFiles): FreshRequests {
  const { spendDir, store, reader, clock } = books;
  const tails = new Map<string, Tail>();
  let marks: readonly Mark[] = [];
  let markedAt = -Infinity;
  let running: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | undefined;

  const copiedOf = (name: string): number =>
    reader.progressOf(join(spendDir, name), name, byIdentity(marks)).mark?.position ?? 0;

  /** Forgets what the usage records have by now. */
  async function forgetCopied(isNew: boolean): Promise<void> {
    if (!isNew && clock.monotonic() - markedAt < MARKS_MS) return;
    marks = await store.marks();
    markedAt = clock.monotonic();
    for (const [name, tail] of tails) {
      if (tail.blocks.length === 0) continue;
      const copied = copiedOf(name);
      tail.blocks = tail.blocks.filter(({ end }) => end > copied);
    }
  }

  function read(name: string, isWritten: boolean): void {
    const known = tails.get(name);
    if (known?.finished) return;
    const fd = openSync(join(spendDir, name), "r");
    try {
      const { ino, size } = fstatSync(fd);
      const isSame = known?.inode === ino && size >= known.position;
      const tail = isSame ? known : newTail(ino, Math.min(size, copiedOf(name)));
      tails.set(name, tail);
      readTail(fd, tail, size);
      tail.finished = !isWritten;
    } finally {
      closeSync(fd);
    }
  }

  async function readOn(): Promise<void> {
    const names = namesIn(spendDir);
    const segments = names.filter(isSegmentName);
    for (const name of tails.keys()) if (!segments.includes(name)) tails.delete(name);
    await forgetCopied(segments.some((name) => !tails.has(name)));
    const all = new Set(names);
    for (const name of segments) unlessGone(() => read(name, all.has(claimFileOf(name))));
  }

  function catchUp(): Promise<void> {
    // One that has begun may have read a segment before the line was written.
    waiting ??= running
      .catch(() => undefined)
      .then(() => {
        waiting = undefined;
        running = readOn();
        return running;
      });
    return waiting;
  }

  return {
    catchUp,
    async find(query) {
      await catchUp();
      const found: SettleRecord[] = [];
      for (const [name, { blocks }] of tails) {
        const offsets = blocks.flatMap((block) => offsetsOf(block, query));
        found.push(...(await latestAt(join(spendDir, name), offsets, query)));
      }
      return found;
    },
  };
}

const newTail = (inode: number, position: number): Tail => ({
  inode,
  position,
  blocks: [],
  finished: false,
});

/** `account` and `id` are JSON texts, so where one ends is certain. */
const keyOf = (account: string, id: string): string => `${account}${id}`;

/** Where lines with the request id begin, in their order. */
function offsetsOf({ offsets }: Block, { requestId, account }: RequestQuery): readonly number[] {
  const id = JSON.stringify(requestId);
  if (account !== undefined) return offsets.get(keyOf(JSON.stringify(account), id)) ?? [];
  return [...offsets]
    .flatMap(([key, starts]) => (key.endsWith(id) ? starts : []))
    .sort((one, other) => one - other);
}

/** The names in a folder, which may not be there yet. */
function namesIn(dir: string): string[] {
  let names: string[] = [];
  unlessGone(() => {
    names = readdirSync(dir);
  });
  return names.sort();
}

/** Does work on a file. Nothing happens if it was deleted meanwhile. */
function unlessGone(work: () => void): void {
  try {
    work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Reads whole lines up to byte `to`. */
function readTail(fd: number, tail: Tail, to: number): void {
  for (let length = BLOCK_BYTES; tail.position < to; ) {
    const bytes = Buffer.alloc(Math.min(length, to - tail.position));
    const read = readSync(fd, bytes, 0, bytes.length, tail.position);
    const whole = bytes.lastIndexOf(NEWLINE, Math.max(0, read - 1)) + 1;
    if (whole === 0 && tail.position + read >= to) return; // The last line is being written.
    if (whole === 0) {
      length *= 2;
      continue;
    }
    const offsets = offsetsIn(bytes.subarray(0, whole), tail.position);
    tail.position += whole;
    if (offsets.size > 0) tail.blocks.push({ end: tail.position, offsets });
  }
}

function offsetsIn(lines: Buffer, from: number): ReadonlyMap<string, readonly number[]> {
  const offsets = new Map<string, number[]>();
  for (let start = 0; start < lines.length; ) {
    const end = lines.indexOf(NEWLINE, start);
    const line = lines.toString("utf8", start, end);
    const isSettle = line.startsWith(SETTLE);
    const id = isSettle ? jsonTextIn(line, '"gateway_request_id":') : undefined;
    const account = isSettle ? jsonTextIn(line, '"account":') : undefined;
    if (id !== undefined && account !== undefined) {
      const key = keyOf(account, id);
      const known = offsets.get(key);
      if (known) known.push(from + start);
      else offsets.set(key, [from + start]);
    }
    start = end + 1;
  }
  return offsets;
}

/**
 * The settle lines of the last requests whose lines begin at these bytes, until there are as many
 * requests as the query wants: somebody may use one id for everything.
 */
async function latestAt(
  path: string,
  offsets: readonly number[],
  { requestId, limit }: RequestQuery,
): Promise<readonly SettleRecord[]> {
  if (offsets.length === 0) return [];
  const file = await open(path);
  try {
    const found: SettleRecord[] = [];
    const requests = new Set<string>();
    for (let at = offsets.length - 1; at >= 0 && requests.size < limit; at -= 1) {
      const record = parseSpendLine(await lineAt(file, offsets[at]!));
      if (record?.type !== "settle" || record.gateway_request_id !== requestId) continue;
      found.push(record);
      requests.add(record.spend_id);
    }
    return found.reverse();
  } finally {
    await file.close();
  }
}

/** The line that begins at a byte. Empty: it has no end. */
async function lineAt(file: FileHandle, offset: number): Promise<string> {
  for (let length = LINE_BYTES; ; length *= 4) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    const end = buffer.indexOf(NEWLINE);
    if (end >= 0) return buffer.toString("utf8", 0, end);
    if (bytesRead < length) return "";
  }
}
