// Finds records by their request id. For the days that are closed there is one sorted file a month,
// `usage/YYYY-MM.ids`; for the open days the same entries are held in memory. An entry is a line of
// ASCII: a hash of the request id, a hash of the account, the day of the month, and where the line
// of the record begins in the file of the day.
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { sha256 } from "../../../core/hash.ts";
import { replaceFile } from "../../scale/data-files/index.ts";
import { readLines } from "../days/index.ts";
import type { RequestQuery } from "../records/index.ts";

const ID_DIGITS = 16;
const ACCOUNT_DIGITS = 8;
const DAY_AT = ID_DIGITS + ACCOUNT_DIGITS;
const OFFSET_AT = DAY_AT + 2;
const OFFSET_DIGITS = 13;
/** With its line end. */
const ENTRY_BYTES = OFFSET_AT + OFFSET_DIGITS + 1;
/** So many entries of a month are written at once. */
const BLOCK_ENTRIES = 16_384;

/** Where the line of a record begins. */
export interface RecordPlace {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first byte of the line in the file of the day. */
  readonly offset: number;
}

/** What the entries of a request id, or its entries of an account, begin with. */
const keyOf = (requestId: string, account: string | undefined): string =>
  sha256(requestId).slice(0, ID_DIGITS) +
  (account === undefined ? "" : sha256(account).slice(0, ACCOUNT_DIGITS));

const offsetIn = (entry: string): number => Number(entry.slice(OFFSET_AT));

/** The entries of one day, in memory. */
export interface DayIds {
  /** Adds a record whose line begins at byte `offset` of the file of the day. */
  add(requestId: string, account: string, offset: number): void;
  /** Where lines may begin that a query looks for: the last ones, the very last first. */
  find(query: RequestQuery): readonly number[];
  /** All entries in their order. */
  sorted(): Iterator<string>;
}

/** The entries of a day, in 256 parts by their first two digits: there may be millions. */
export function createDayIds(day: string): DayIds {
  const parts = new Map<string, string[]>();

  function partOf(key: string): string[] {
    const name = key.slice(0, 2);
    const part = parts.get(name) ?? [];
    parts.set(name, part);
    return part;
  }

  return {
    add(requestId, account, offset) {
      const key = keyOf(requestId, account);
      const entry = [key, day.slice(8), String(offset).padStart(OFFSET_DIGITS, "0")];
      // join() makes a text of its own: a sum of slices would keep whole hashes in memory.
      partOf(key).push(entry.join(""));
    },
    find({ requestId, account, limit }) {
      const key = keyOf(requestId, account);
      const entries = partOf(key).filter((entry) => entry.startsWith(key));
      return entries.slice(-limit).reverse().map(offsetIn);
    },
    *sorted() {
      for (const name of [...parts.keys()].sort()) yield* [...partOf(name)].sort();
    },
  };
}

/** Merges the entries of a day into the file of its month. Those that it has of that day go. */
export async function mergeIntoMonth(path: string, day: string, ids: DayIds): Promise<void> {
  async function* merged(): AsyncGenerator<string> {
    const added = ids.sorted();
    let next = added.next();
    for await (const line of linesIn(path)) {
      for (; !next.done && next.value < line; next = added.next()) yield next.value;
      if (line.slice(DAY_AT, OFFSET_AT) !== day.slice(8)) yield line;
    }
    for (; !next.done; next = added.next()) yield next.value;
  }

  await replaceFile(path, inBlocks(merged()));
}

async function* linesIn(path: string): AsyncGenerator<string> {
  if (existsSync(path)) for await (const { lines } of readLines(path)) yield* lines;
}

async function* inBlocks(entries: AsyncIterable<string>): AsyncGenerator<string> {
  let block: string[] = [];
  for await (const entry of entries) {
    block.push(`${entry}\n`);
    if (block.length < BLOCK_ENTRIES) continue;
    yield block.join("");
    block = [];
  }
  yield block.join("");
}

/**
 * The places of the last `limit` records of each account that has the request id, the very last
 * first. An id may have been used for millions of requests: only these entries are read.
 */
export function findInMonth(path: string, query: RequestQuery): readonly RecordPlace[] {
  const month = /(\d{4}-\d\d)\.ids$/.exec(path)?.[1] ?? "";
  const key = keyOf(query.requestId, query.account);
  const fd = openSync(path, "r");
  try {
    const found: string[] = [];
    const end = firstAfter(fd, key);
    for (let at = firstFrom(fd, key); at < end; ) {
      const ofAccount = firstAfter(fd, entryAt(fd, at).slice(0, DAY_AT));
      for (at = Math.max(at, ofAccount - query.limit); at < ofAccount; at += 1)
        found.push(entryAt(fd, at).slice(DAY_AT));
    }
    found.sort().reverse();
    // What is left of an entry is the day and the offset.
    return found.map((rest) => ({
      day: `${month}-${rest.slice(0, 2)}`,
      offset: Number(rest.slice(2)),
    }));
  } finally {
    closeSync(fd);
  }
}

/** The entry with the number `index`, without its line end. */
function entryAt(fd: number, index: number): string {
  const bytes = Buffer.alloc(ENTRY_BYTES - 1);
  readSync(fd, bytes, 0, bytes.length, index * ENTRY_BYTES);
  return bytes.toString("latin1");
}

/** The number of the first entry that stands after all that begin with a key. */
const firstAfter = (fd: number, key: string): number => firstFrom(fd, `${key}~`);

/** The number of the first entry that does not stand before a text. */
function firstFrom(fd: number, text: string): number {
  let low = 0;
  for (let high = Math.floor(fstatSync(fd).size / ENTRY_BYTES); low < high; ) {
    const middle = (low + high) >> 1;
    if (entryAt(fd, middle) < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
