// Finds records by their request id. For the days that are closed there is one sorted file a month,
// `usage/YYYY-MM.ids`; for the open days the same entries are held in memory. An entry is a hash of
// the request id, a hash of the account, the day of the month, and where the line begins in the
// file of the day. Entries are compared as bytes, so numbers are big-endian.
import { hash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { setImmediate as turnEnd } from "node:timers/promises";
import { syncToDisk } from "../../data-files/index.ts";
import type { RequestQuery, UsageRecord } from "../records/index.ts";

const ID_BYTES = 8;
const KEY_BYTES = 12;
const ENTRY_BYTES = 18;
/** So much of a month's file is merged in one turn of the event loop. */
const BLOCK_BYTES = ENTRY_BYTES * 16_384;

/** Where the line of a record begins. */
export interface RecordPlace {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first byte of the line in the file of the day. */
  readonly offset: number;
}

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

/** The entry of a record. */
export function entryOf(requestId: string, account: string, { day, offset }: RecordPlace): Buffer {
  const entry = Buffer.allocUnsafe(ENTRY_BYTES);
  digest(requestId).copy(entry, 0, 0, ID_BYTES);
  digest(account).copy(entry, ID_BYTES, 0, KEY_BYTES - ID_BYTES);
  entry.writeUInt8(Number(day.slice(8)), KEY_BYTES);
  entry.writeUIntBE(offset, KEY_BYTES + 1, ENTRY_BYTES - KEY_BYTES - 1);
  return entry;
}

/** The first bytes of the entries that a query looks for. */
function keyOf({ requestId, account }: RequestQuery): Buffer {
  const id = digest(requestId).subarray(0, ID_BYTES);
  if (account === undefined) return id;
  return Buffer.concat([id, digest(account).subarray(0, KEY_BYTES - ID_BYTES)]);
}

/** Sorts entries, a part at a time: there may be millions. */
export async function sorted(entries: readonly Buffer[]): Promise<readonly Buffer[]> {
  const buckets: Buffer[][] = Array.from({ length: 256 }, () => []);
  for (const entry of entries) buckets[entry[0]!]!.push(entry);
  for (const bucket of buckets) {
    bucket.sort((one, other) => one.compare(other));
    await turnEnd();
  }
  return buckets.flat();
}

/**
 * Merges the sorted entries of a day into the file of its month. Entries that the file has of that
 * day go.
 */
export async function mergeIntoMonth(
  path: string,
  day: string,
  entries: readonly Buffer[],
): Promise<void> {
  const dayOfMonth = Number(day.slice(8));
  const draft = `${path}.new`;
  const out = openSync(draft, "w", 0o600);
  let next = 0;
  try {
    for await (const block of blocksOf(path)) {
      const merged: Buffer[] = [];
      for (let at = 0; at < block.length; at += ENTRY_BYTES) {
        const entry = block.subarray(at, at + ENTRY_BYTES);
        if (entry[KEY_BYTES] === dayOfMonth) continue;
        for (; next < entries.length && entries[next]!.compare(entry) < 0; next += 1)
          merged.push(entries[next]!);
        merged.push(entry);
      }
      writeFileSync(out, Buffer.concat(merged));
    }
    for (; next < entries.length; next += BLOCK_BYTES / ENTRY_BYTES) {
      writeFileSync(out, Buffer.concat(entries.slice(next, next + BLOCK_BYTES / ENTRY_BYTES)));
      await turnEnd();
    }
  } finally {
    closeSync(out);
  }
  await syncToDisk(draft);
  renameSync(draft, path);
}

async function* blocksOf(path: string): AsyncGenerator<Buffer> {
  if (!existsSync(path)) return;
  const fd = openSync(path, "r");
  try {
    for (let at = 0; ; at += BLOCK_BYTES) {
      const block = Buffer.allocUnsafe(BLOCK_BYTES);
      const read = readSync(fd, block, 0, BLOCK_BYTES, at);
      if (read === 0) return;
      yield block.subarray(0, read);
      await turnEnd();
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * The places of the last `limit` records of each account that has the request id. An id may have
 * been used for millions of requests: only these entries are read.
 */
export function findInMonth(path: string, query: RequestQuery): readonly RecordPlace[] {
  if (!existsSync(path)) return [];
  const month = /(\d{4}-\d\d)\.ids$/.exec(path)?.[1] ?? "";
  const key = keyOf(query);
  const fd = openSync(path, "r");
  try {
    const places: RecordPlace[] = [];
    const end = firstAfter(fd, key);
    for (let at = firstFrom(fd, key); at < end; ) {
      const ofAccount = firstAfter(fd, entryAt(fd, at).subarray(0, KEY_BYTES));
      for (at = Math.max(at, ofAccount - query.limit); at < ofAccount; at += 1)
        places.push(placeIn(entryAt(fd, at), month));
    }
    return places;
  } finally {
    closeSync(fd);
  }
}

function entryAt(fd: number, index: number): Buffer {
  const entry = Buffer.allocUnsafe(ENTRY_BYTES);
  readSync(fd, entry, 0, ENTRY_BYTES, index * ENTRY_BYTES);
  return entry;
}

/** The index of the first entry that does not stand before a key. */
const firstFrom = (fd: number, key: Buffer): number =>
  firstWhere(fd, (entry) => entry.subarray(0, key.length).compare(key) >= 0);

/** The index of the first entry that stands after all that begin with a key. */
const firstAfter = (fd: number, key: Buffer): number =>
  firstWhere(fd, (entry) => entry.subarray(0, key.length).compare(key) > 0);

/** Of a test that holds from some entry on, that entry's index. */
function firstWhere(fd: number, test: (entry: Buffer) => boolean): number {
  let low = 0;
  for (let high = Math.floor(fstatSync(fd).size / ENTRY_BYTES); low < high; ) {
    const middle = (low + high) >> 1;
    if (test(entryAt(fd, middle))) high = middle;
    else low = middle + 1;
  }
  return low;
}

const placeIn = (entry: Buffer, month: string): RecordPlace => ({
  day: `${month}-${String(entry[KEY_BYTES]).padStart(2, "0")}`,
  offset: entry.readUIntBE(KEY_BYTES + 1, ENTRY_BYTES - KEY_BYTES - 1),
});

/** The entries of an open day, which grows. */
export interface OpenIds {
  /** How many bytes of the file of the day are in it. */
  end: number;
  /** Where the lines of an id of an account begin, in their order, by a hash of both. */
  readonly offsets: Map<number, number | number[]>;
  /** All accounts that have records of the day. */
  readonly accounts: Set<string>;
}

export const emptyIds = (): OpenIds => ({ end: 0, offsets: new Map(), accounts: new Set() });

const numberOf = (requestId: string, account: string): number =>
  digest(`${account}\n${requestId}`).readUIntBE(0, 6);

/** Adds the line of a record that begins at byte `offset`. */
export function addOpen(ids: OpenIds, record: UsageRecord, offset: number): void {
  const { offsets, accounts } = ids;
  const number = numberOf(record.gateway_request_id, record.account);
  const known = offsets.get(number);
  accounts.add(record.account);
  if (known === undefined) offsets.set(number, offset);
  else if (typeof known === "number") offsets.set(number, [known, offset]);
  else known.push(offset);
}

/** Where lines may begin that a query looks for: the last ones of each account. */
export function findOpen({ offsets, accounts }: OpenIds, query: RequestQuery): readonly number[] {
  const asked = query.account === undefined ? [...accounts] : [query.account];
  return asked.flatMap((account) => {
    const known = offsets.get(numberOf(query.requestId, account)) ?? [];
    return typeof known === "number" ? [known] : known.slice(-query.limit);
  });
}
