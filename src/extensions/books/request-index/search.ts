// Finds entries in a run. Hashes are spread evenly, so the place of a key can be guessed, and one
// or two reads are enough in a run of any size.
import type { FileHandle } from "node:fs/promises";
import { ENTRY_BYTES, KEY_BYTES, offsetIn, type EntryRange } from "./entries.ts";
import { HEADER_BYTES, withFile, type Run } from "./runs.ts";

/** Entries that are read at once: a guess among ten million is rarely farther off than half. */
const WINDOW = 4_096;
/** Of entries beyond this only the last are read: somebody has used one id for everything. */
const MOST = 100_000;
/** Most ids have fewer entries: one read has all of them. */
const FEW = 32;
/** Of a key so many bytes say where it may be. A number holds them exactly. */
const VALUE_BYTES = 6;

/** Where the lines of the entries in a range begin: of the last `MOST` of them. */
export const offsetsIn = (run: Run, range: EntryRange): Promise<readonly number[]> =>
  withFile(run.path, (file) => search(file, range));

async function search(file: FileHandle, { first, last }: EntryRange): Promise<readonly number[]> {
  const { size } = await file.stat();
  const high = Math.floor((size - HEADER_BYTES) / ENTRY_BYTES);
  const begin = await firstFrom({ file, low: 0, high }, first, (key) => key.compare(first) < 0);
  const isInRange = (key: Buffer): boolean => key.compare(last) <= 0;
  const few = await read(file, begin, FEW);
  const count = countBefore(few, isInRange);
  if (count < FEW) return offsetsOf(few.subarray(0, count * ENTRY_BYTES));
  const end = await firstFrom({ file, low: begin, high }, last, isInRange);
  const from = Math.max(begin, end - MOST);
  return offsetsOf(await read(file, from, end - from));
}

const offsetsOf = (entries: Buffer): readonly number[] =>
  Array.from({ length: entries.length / ENTRY_BYTES }, (_, at) => offsetIn(entries, at));

/** The part of a run in which something is looked for. */
interface Part {
  readonly file: FileHandle;
  /** The first entry. */
  readonly low: number;
  /** The first entry that does not belong to it any more. */
  readonly high: number;
}

/** Whether a key stands before the entry that is looked for. */
type IsBefore = (key: Buffer) => boolean;

/** The first entry that is not before `key`. Each second guess halves, whatever the keys are. */
async function firstFrom({ file, low, high }: Part, key: Buffer, isBefore: IsBefore) {
  const value = key.readUIntBE(0, VALUE_BYTES);
  let [lowest, highest] = [0, 2 ** (8 * VALUE_BYTES)];
  for (let guesses = 0; high - low > WINDOW; guesses += 1) {
    const share =
      guesses % 2 === 0 && highest > lowest ? (value - lowest) / (highest - lowest) : 0.5;
    const guess = low + Math.floor((high - low) * share) - WINDOW / 2;
    const start = Math.min(high - WINDOW, Math.max(low, guess));
    const entries = await read(file, start, WINDOW);
    const before = countBefore(entries, isBefore);
    if (before === 0) {
      high = start;
      highest = valueAt(entries, 0);
    } else if (before === WINDOW) {
      low = start + WINDOW;
      lowest = valueAt(entries, WINDOW - 1);
    } else {
      return start + before;
    }
  }
  return low + countBefore(await read(file, low, high - low), isBefore);
}

const valueAt = (entries: Buffer, at: number): number =>
  entries.readUIntBE(at * ENTRY_BYTES, VALUE_BYTES);

/** How many of some sorted entries stand before the one that is looked for. */
function countBefore(entries: Buffer, isBefore: IsBefore): number {
  let [low, high] = [0, entries.length / ENTRY_BYTES];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const at = middle * ENTRY_BYTES;
    if (isBefore(entries.subarray(at, at + KEY_BYTES))) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function read(file: FileHandle, from: number, count: number): Promise<Buffer> {
  const length = count * ENTRY_BYTES;
  const position = HEADER_BYTES + from * ENTRY_BYTES;
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead - (bytesRead % ENTRY_BYTES));
}
