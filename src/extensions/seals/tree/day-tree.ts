// The hash tree of a closed day, `seals/YYYY-MM-DD.tree`: the sorted entries of its records, and
// behind them the nodes of each level above, up to the root. With the file a record is proved
// without reading the others.
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { syncToDisk } from "../../data-files/index.ts";
import { ENTRY_BYTES, findLeaf, sortedLeaves, type SortedLeaves } from "./leaf-list.ts";
import { EMPTY_ROOT, HASH_BYTES, heightOf, levelSize, nodeOf, proofOf } from "./merkle.ts";

/** Nodes are made so many at a time, so that requests are served meanwhile. */
const NODES_PER_TURN = 2_048;

/** The tree of a day. */
export interface DayTree {
  readonly leaves: SortedLeaves;
  /** In 64 hexadecimal digits. */
  readonly root: string;
  /** The nodes of each level from 1 on. */
  readonly levels: readonly Buffer[];
}

/** The file of a day's tree. `dir`: the folder of the seals. */
export const treeFile = (dir: string, day: string): string => join(dir, `${day}.tree`);

/** Makes the nodes of a tree. */
export async function treeOf(leaves: SortedLeaves): Promise<DayTree> {
  if (leaves.count === 0) return { leaves, root: EMPTY_ROOT, levels: [] };
  const levels: Buffer[] = [];
  let below = (index: number): Buffer => leaves.leafAt(index);
  for (let level = 1; level <= heightOf(leaves.count); level += 1) {
    const nodes = await levelAbove(levelSize(leaves.count, level - 1), below);
    levels.push(nodes);
    below = (index) => nodes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }
  return { leaves, root: below(0).toString("hex"), levels };
}

async function levelAbove(size: number, below: (index: number) => Buffer): Promise<Buffer> {
  const nodes = Buffer.alloc(Math.ceil(size / 2) * HASH_BYTES);
  for (let index = 0; index < size; index += 2) {
    const node = index + 1 < size ? nodeOf(below(index), below(index + 1)) : below(index);
    nodes.set(node, (index / 2) * HASH_BYTES);
    if (index % (2 * NODES_PER_TURN) === 0) await nextTurn();
  }
  return nodes;
}

/** Writes the file of a tree, all of it at once, and brings it to the disk. */
export async function writeTree(path: string, { leaves, levels }: DayTree): Promise<void> {
  const draft = `${path}.new`;
  const file = await open(draft, "w", 0o600);
  try {
    for (const bytes of [leaves.bytes, ...levels]) await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  await syncToDisk(dirname(path));
}

/** The entries in the file of a tree of so many records. Undefined: the file is too short. */
export const readLeaves = (path: string, count: number): SortedLeaves | undefined =>
  leavesIn(readFileSync(path), count);

/** The entries in the content of the file of a tree. Undefined: it is too short. */
export function leavesIn(bytes: Buffer, count: number): SortedLeaves | undefined {
  const end = count * ENTRY_BYTES;
  return bytes.length < end ? undefined : sortedLeaves(bytes.subarray(0, end));
}

/** Whether a file is that of a tree, with all nodes and nothing else. */
export const isWholeTree = (path: string, { leaves, levels }: DayTree): boolean =>
  readFileSync(path).equals(Buffer.concat([leaves.bytes, ...levels]));

/** How many bytes the file of a tree of so many records has. */
export function treeBytes(count: number): number {
  let bytes = count * ENTRY_BYTES;
  for (let level = 1; level <= heightOf(count); level += 1)
    bytes += levelSize(count, level) * HASH_BYTES;
  return bytes;
}

/** The place of a record in a tree, and the hashes that prove it. */
export interface LeafProof {
  readonly index: number;
  readonly hashes: readonly string[];
}

/**
 * Finds a leaf in the file of a tree of `count` records by reading a few places of it. Undefined if
 * it is not there.
 */
export function proveLeaf(path: string, count: number, leaf: Uint8Array): LeafProof | undefined {
  const fd = openSync(path, "r");
  try {
    if (fstatSync(fd).size !== treeBytes(count)) return undefined;
    const read = (at: number): Buffer => {
      const bytes = Buffer.alloc(HASH_BYTES);
      readSync(fd, bytes, 0, HASH_BYTES, at);
      return bytes;
    };
    const index = findLeaf(count, leaf, (at) => read(at * ENTRY_BYTES));
    if (index < 0) return undefined;
    return {
      index,
      hashes: proofOf(count, [index], (level, at) => read(nodePlace(count, level, at))),
    };
  } finally {
    closeSync(fd);
  }
}

/** Where a node stands in the file, in bytes. */
function nodePlace(count: number, level: number, index: number): number {
  if (level === 0) return index * ENTRY_BYTES;
  let place = count * ENTRY_BYTES;
  for (let below = 1; below < level; below += 1) place += levelSize(count, below) * HASH_BYTES;
  return place + index * HASH_BYTES;
}
