// Finds entries in a run. Hashes are spread evenly, so the place of a key can be guessed: among ten
// million entries the first guess is off by some two thousand, the second by some fifty. Two small
// reads are enough in a run of any size, and nothing of it is kept in memory.
import { fstatSync } from "node:fs";
import { ENTRY_BYTES, KEY_BYTES, offsetIn, VALUE_BYTES, type EntryRange } from "./entries.ts";
import { readAt, withDescriptor } from "./read-file.ts";
import { HEADER_BYTES, type Run } from "./runs.ts";

/**
 * Entries that are read at once: 2.3 KB. One read that is large enough for the first guess would
 * have 72 KB, of each run for each search, and so much garbage makes the collector run often.
 */
const WINDOW = 128;
/** Of entries beyond this only the last are read: somebody has used one id for everything. */
const MOST = 100_000;
/** Each third guess halves, whatever the keys are. */
const HALVING = 3;

/** Where the lines of the entries in a range begin: of the last `MOST` of them. */
export const offsetsIn = (run: Run, range: EntryRange): Promise<readonly number[]> =>
  withDescriptor(run.path, (fd) => search(fd, range));

async function search(fd: number, { first, last }: EntryRange): Promise<readonly number[]> {
  const bytes = Math.max(0, fstatSync(fd).size - HEADER_BYTES);
  const run = { fd, size: Math.floor(bytes / ENTRY_BYTES) };
  const begin = await firstFrom(run, first, (key) => key.compare(first) < 0);
  const isInRange = (key: Buffer): boolean => key.compare(last) <= 0;
  const count = countBefore(begin.entries, isInRange);
  if (count < lengthOf(begin.entries) || begin.at + count >= run.size)
    return offsetsOf(begin.entries.subarray(0, count * ENTRY_BYTES));
  const end = await firstFrom(run, last, isInRange);
  const from = Math.max(begin.at, end.at - MOST);
  return offsetsOf(await read(fd, from, end.at - from));
}

const lengthOf = (entries: Buffer): number => Math.floor(entries.length / ENTRY_BYTES);

const offsetsOf = (entries: Buffer): readonly number[] =>
  Array.from({ length: lengthOf(entries) }, (_, at) => offsetIn(entries, at));

/** A run that is open. */
interface OpenRun {
  /** The descriptor of the file. */
  readonly fd: number;
  /** How many entries it has. */
  readonly size: number;
}

/** A place in a run. */
interface Place {
  /** The number of the entry. */
  readonly at: number;
  /** Entries from there on that were read already. */
  readonly entries: Buffer;
}

/** Whether a key stands before the entry that is looked for. */
type IsBefore = (key: Buffer) => boolean;

/** The first entry that is not before `key`. */
async function firstFrom(run: OpenRun, key: Buffer, isBefore: IsBefore): Promise<Place> {
  const value = key.readUIntBE(0, VALUE_BYTES);
  let [low, high] = [0, run.size];
  let [lowest, highest] = [0, 2 ** (8 * VALUE_BYTES)];
  for (let guesses = 1; ; guesses += 1) {
    const isGuessed = guesses % HALVING !== 0 && highest > lowest;
    const share = isGuessed ? (value - lowest) / (highest - lowest) : 0.5;
    const guess = low + Math.floor((high - low) * share) - WINDOW / 2;
    const start = Math.max(low, Math.min(high - WINDOW, guess));
    const entries = await read(run.fd, start, Math.min(WINDOW, high - start));
    const length = lengthOf(entries);
    const before = countBefore(entries, isBefore);
    const isFound = (before > 0 || start === low) && (before < length || start + length >= high);
    // Entries that are missing were cut off after the run was checked. The records are there still.
    if (isFound || length === 0)
      return { at: start + before, entries: entries.subarray(before * ENTRY_BYTES) };
    if (before === 0) {
      high = start;
      highest = valueAt(entries, 0);
    } else {
      low = start + length;
      lowest = valueAt(entries, length - 1);
    }
  }
}

const valueAt = (entries: Buffer, at: number): number =>
  entries.readUIntBE(at * ENTRY_BYTES, VALUE_BYTES);

/** How many of some sorted entries stand before the one that is looked for. */
function countBefore(entries: Buffer, isBefore: IsBefore): number {
  let [low, high] = [0, lengthOf(entries)];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const at = middle * ENTRY_BYTES;
    if (isBefore(entries.subarray(at, at + KEY_BYTES))) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function read(fd: number, from: number, count: number): Promise<Buffer> {
  const bytes = await readAt(fd, HEADER_BYTES + from * ENTRY_BYTES, count * ENTRY_BYTES);
  return bytes.subarray(0, lengthOf(bytes) * ENTRY_BYTES);
}
