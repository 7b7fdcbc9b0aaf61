// The hash tree of a day's usage records. A leaf is the SHA-256 of a zero byte and the columns of
// the record. The leaves are sorted. A node is the SHA-256 of a one byte and the two nodes below
// it; the last node of a level that has no neighbour goes up as it is. One hash, the root, stands
// for all records, and a few hashes prove that some records are among them.
import { hash } from "node:crypto";

/** The bytes of a hash. */
export const HASH_BYTES = 32;
/** The root of no records. */
export const EMPTY_ROOT = hash("sha256", "", "hex");

const NODE = Buffer.from([1]);

/** What ends the columns of records that wrote nothing to a cache. */
const NO_CACHE_WRITES = ',"cache_write_tokens":0}';
/** What a receipt says beside the columns. Quotes inside of texts are escaped. */
const DETAILS_AT = ',"details":';

/**
 * The columns of a record as its leaf has them. `line`: as it stands in a month's file, without its
 * line end. What a receipt says beside the columns is left out, and so is that nothing was written
 * to a cache: earlier versions did not have these.
 */
export function columnsIn(line: string): string {
  const at = line.indexOf(DETAILS_AT);
  const columns = at < 0 ? line : `${line.slice(0, at)}}`;
  return columns.endsWith(NO_CACHE_WRITES)
    ? `${columns.slice(0, -NO_CACHE_WRITES.length)}}`
    : columns;
}

/** Whether the line of a record says more than its columns. */
export const hasDetails = (line: string): boolean => line.includes(DETAILS_AT);

/** The hash of a whole line. */
export const wholeLeafOf = (line: string): Buffer => hash("sha256", `\0${line}`, "buffer");

/** The leaf of a record, by its line. */
export const leafOf = (line: string): Buffer => wholeLeafOf(columnsIn(line));

/** The node above two others. */
export const nodeOf = (left: Uint8Array, right: Uint8Array): Buffer =>
  hash("sha256", Buffer.concat([NODE, left, right]), "buffer");

/** How many nodes a level has. Level 0 is the leaves. */
export const levelSize = (leaves: number, level: number): number => Math.ceil(leaves / 2 ** level);

/** The level of the root. */
export function heightOf(leaves: number): number {
  let level = 0;
  while (levelSize(leaves, level) > 1) level += 1;
  return level;
}

/** Whether one of the sorted indices is of a leaf below a node. */
function isKnownBelow(known: readonly number[], level: number, index: number): boolean {
  const from = index * 2 ** level;
  let low = 0;
  let high = known.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (known[middle]! < from) low = middle + 1;
    else high = middle;
  }
  return low < known.length && known[low]! < from + 2 ** level;
}

/** Looks up a node of a tree. */
export type NodeAt = (level: number, index: number) => Uint8Array;

/**
 * The hashes that prove some leaves: from the root down, left before right, each node below which
 * no leaf is known. `known`: the indices of the leaves, sorted, at least one.
 */
export function proofOf(leaves: number, known: readonly number[], nodeAt: NodeAt): string[] {
  const hashes: string[] = [];
  function walk(level: number, index: number): void {
    if (!isKnownBelow(known, level, index)) {
      hashes.push(Buffer.from(nodeAt(level, index)).toString("hex"));
      return;
    }
    if (level === 0) return;
    walk(level - 1, 2 * index);
    if (2 * index + 1 < levelSize(leaves, level - 1)) walk(level - 1, 2 * index + 1);
  }
  walk(heightOf(leaves), 0);
  return hashes;
}

/**
 * The root that known leaves and the hashes of proofOf() come to, in hexadecimal digits. Undefined
 * if there are too few or too many hashes, or an index is none.
 */
export function rootOfProof(
  leaves: number,
  known: ReadonlyMap<number, Uint8Array>,
  hashes: readonly string[],
): string | undefined {
  const indices = [...known.keys()].sort((a, b) => a - b);
  const isInside = indices.every((at) => Number.isInteger(at) && at >= 0 && at < leaves);
  if (!isInside || indices.length === 0) return undefined;
  let used = 0;
  function walk(level: number, index: number): Uint8Array {
    if (!isKnownBelow(indices, level, index)) {
      const next = Buffer.from(hashes[used] ?? "", "hex");
      used += 1;
      return next;
    }
    if (level === 0) return known.get(index)!;
    const left = walk(level - 1, 2 * index);
    if (2 * index + 1 >= levelSize(leaves, level - 1)) return left;
    return nodeOf(left, walk(level - 1, 2 * index + 1));
  }
  const root = Buffer.from(walk(heightOf(leaves), 0)).toString("hex");
  return used === hashes.length ? root : undefined;
}
