// The index of records by request id. Closed days have one sorted file a month,
// `usage/YYYY-MM.ids`. Open days have the same entries in memory. An entry is a hash of the request
// id, a hash of the account, the day of the month, and the offset of the line in the day's file.
// Entries are compared as bytes, so numbers are big-endian.
import { hash } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { replaceFile } from "../../scale/data-files/index.ts";
import type { RequestQuery } from "../records/index.ts";

const ID_BYTES = 8;
const KEY_BYTES = 12;
const OFFSET_BYTES = 5;
const ENTRY_BYTES = KEY_BYTES + 1 + OFFSET_BYTES;
/** How many entries of a month are read or written at a time. */
const BLOCK_ENTRIES = 16_384;

/** The place of a record's line. */
export interface RecordPlace {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first byte of the line in the file of the day. */
  readonly offset: number;
}

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** The bytes with which the entries of a request id begin, or those of an account among them. */
function keyOf(requestId: string, account: string | undefined): Buffer {
  const id = digest(requestId).subarray(0, ID_BYTES);
  return account === undefined ? id : Buffer.concat([id, digest(account)], KEY_BYTES);
}

const offsetIn = (entry: Buffer): number => entry.readUIntBE(KEY_BYTES + 1, OFFSET_BYTES);

/** The entries of one day, in memory. */
export interface DayIds {
  /** Adds a record whose line begins at byte `offset` of the file of the day. */
  add(requestId: string, account: string, offset: number): void;
  /** The offsets of the latest lines that may match a query, the latest first. */
  find(query: RequestQuery): readonly number[];
  /** All entries in their order. */
  sorted(): Iterator<Buffer>;
}

/** Creates the entries of a day. There may be millions, so they are in 256 parts by first byte. */
export function createDayIds(day: string): DayIds {
  const parts = Array.from({ length: 256 }, () => ({ bytes: Buffer.alloc(0), size: 0 }));
  return {
    add(requestId, account, offset) {
      const key = keyOf(requestId, account);
      const part = parts[key[0]!]!;
      const { bytes, size } = part;
      if (size === bytes.length) part.bytes = Buffer.concat([bytes], 2 * size + 8 * ENTRY_BYTES);
      key.copy(part.bytes, size);
      part.bytes[size + KEY_BYTES] = Number(day.slice(8));
      part.bytes.writeUIntBE(offset, size + KEY_BYTES + 1, OFFSET_BYTES);
      part.size += ENTRY_BYTES;
    },
    find({ requestId, account, limit }) {
      const key = keyOf(requestId, account);
      const { bytes, size } = parts[key[0]!]!;
      const offsets: number[] = [];
      for (let end = size; end > 0 && offsets.length < limit; ) {
        end = Math.max(0, bytes.subarray(0, end).lastIndexOf(key));
        const entry = bytes.subarray(end, end + ENTRY_BYTES);
        // The key may also occur across the border of two entries.
        const isFound = end % ENTRY_BYTES === 0 && entry.subarray(0, key.length).equals(key);
        if (isFound) offsets.push(offsetIn(entry));
      }
      return offsets;
    },
    *sorted() {
      for (const { bytes, size } of parts)
        yield* entriesIn(bytes.subarray(0, size)).sort((one, other) => one.compare(other));
    },
  };
}

/** The whole entries in some bytes. */
const entriesIn = (bytes: Buffer): Buffer[] =>
  Array.from({ length: Math.floor(bytes.length / ENTRY_BYTES) }, (_, index) =>
    bytes.subarray(index * ENTRY_BYTES, (index + 1) * ENTRY_BYTES),
  );

/** How many whole entries the file of a month has. 0: there is no file. */
export const entryCountIn = (path: string): number =>
  Math.floor((statSync(path, { throwIfNoEntry: false })?.size ?? 0) / ENTRY_BYTES);

/** Replaces the entries of a day in the file of its month. */
export async function mergeIntoMonth(path: string, day: string, ids: DayIds): Promise<void> {
  const dayOfMonth = Number(day.slice(8));

  function* merged(): Generator<Buffer> {
    const added = ids.sorted();
    let next = added.next();
    for (const entry of entriesOf(path)) {
      for (; !next.done && next.value.compare(entry) < 0; next = added.next()) yield next.value;
      if (entry[KEY_BYTES] !== dayOfMonth) yield entry;
    }
    for (; !next.done; next = added.next()) yield next.value;
  }

  await replaceFile(path, inBlocks(merged()));
}

function* inBlocks(entries: Iterable<Buffer>): Generator<Buffer> {
  let block: Buffer[] = [];
  for (const entry of entries) {
    block.push(entry);
    if (block.length < BLOCK_ENTRIES) continue;
    yield Buffer.concat(block);
    block = [];
  }
  yield Buffer.concat(block);
}

/** The entries in the file of a month, in their order. */
function* entriesOf(path: string): Generator<Buffer> {
  if (!existsSync(path)) return;
  const fd = openSync(path, "r");
  try {
    for (let at = 0; ; at += BLOCK_ENTRIES) {
      const entries = entriesIn(bytesAt(fd, at, BLOCK_ENTRIES));
      if (entries.length === 0) return;
      yield* entries;
    }
  } finally {
    closeSync(fd);
  }
}

/** Reads up to `count` entries of a file, beginning with number `index`. */
function bytesAt(fd: number, index: number, count = 1): Buffer {
  const bytes = Buffer.allocUnsafe(count * ENTRY_BYTES);
  return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, index * ENTRY_BYTES));
}

/**
 * The places of the last `limit` records of each account with the request id, the latest first.
 * Only these entries are read: an id may have been used for millions of requests.
 */
export function findInMonth(path: string, query: RequestQuery): readonly RecordPlace[] {
  const month = /(\d{4}-\d\d)\.ids$/.exec(path)?.[1] ?? "";
  const key = keyOf(query.requestId, query.account);
  const fd = openSync(path, "r");
  try {
    const found: Buffer[] = [];
    const end = firstAfter(fd, key);
    for (let at = firstFrom(fd, key); at < end; ) {
      const endOfAccount = firstAfter(fd, bytesAt(fd, at).subarray(0, KEY_BYTES));
      for (at = Math.max(at, endOfAccount - query.limit); at < endOfAccount; at += 1)
        found.push(bytesAt(fd, at).subarray(KEY_BYTES));
    }
    // Without its key, an entry is the day and the offset.
    found.sort((one, other) => other.compare(one));
    return found.map((rest) => ({
      day: `${month}-${String(rest[0]).padStart(2, "0")}`,
      offset: rest.readUIntBE(1, OFFSET_BYTES),
    }));
  } finally {
    closeSync(fd);
  }
}

/** The number of the first entry after all entries that begin with a key. */
const firstAfter = (fd: number, key: Buffer): number =>
  firstFrom(fd, Buffer.concat([key, Buffer.alloc(ENTRY_BYTES, 255)]));

/** The number of the first entry that is not less than `bytes`. A binary search. */
function firstFrom(fd: number, bytes: Buffer): number {
  let low = 0;
  for (let high = Math.floor(fstatSync(fd).size / ENTRY_BYTES); low < high; ) {
    const middle = (low + high) >> 1;
    if (bytesAt(fd, middle).compare(bytes) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
