// The leaves of usage records, many of them in little memory: each is 48 bytes, the leaf and the
// 16 bytes by which its usage_id can be named again.
import { hash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HASH_BYTES } from "./merkle.ts";

const ID_BYTES = 16;
/** The bytes of an entry. */
export const ENTRY_BYTES = HASH_BYTES + ID_BYTES;
const FIRST_ENTRIES = 1_024;
/** Leaves are sorted in groups by their first byte, which takes a turn of the event loop each. */
const GROUPS = 256;
const SPEND_ID = /^sp_[0-9a-f]{32}$/;

/** Leaves while they are collected. */
export interface LeafList {
  add(usageId: string, leaf: Uint8Array): void;
  count(): number;
  /** All entries, sorted by their leaves. */
  sorted(): Promise<SortedLeaves>;
}

/** Sorted leaves. */
export interface SortedLeaves {
  readonly count: number;
  /** `count` entries of ENTRY_BYTES each. */
  readonly bytes: Buffer;
  leafAt(index: number): Buffer;
  /** The usage_id of an entry, or what stands for it. */
  idAt(index: number): string;
  /** The index of a leaf. -1: it is not among them. */
  indexOf(leaf: Uint8Array): number;
  /** The index of a usage_id, which takes a look at all entries. -1: it is not among them. */
  indexOfId(usageId: string): number;
}

const idBytes = (usageId: string): Buffer =>
  SPEND_ID.test(usageId)
    ? Buffer.from(usageId.slice("sp_".length), "hex")
    : hash("sha256", usageId, "buffer").subarray(0, ID_BYTES);

/** A list of no leaves. */
export function createLeafList(): LeafList {
  let bytes = Buffer.alloc(FIRST_ENTRIES * ENTRY_BYTES);
  let count = 0;
  return {
    add(usageId, leaf) {
      const at = count * ENTRY_BYTES;
      if (at === bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(bytes.length)]);
      bytes.set(leaf, at);
      bytes.set(idBytes(usageId), at + HASH_BYTES);
      count += 1;
    },
    count: () => count,
    sorted: async () => sortedLeaves(await sortEntries(bytes.subarray(0, count * ENTRY_BYTES))),
  };
}

async function sortEntries(bytes: Buffer): Promise<Buffer> {
  const groups = Array.from({ length: GROUPS }, (): Buffer[] => []);
  for (let at = 0; at < bytes.length; at += ENTRY_BYTES)
    groups[bytes[at]!]!.push(bytes.subarray(at, at + ENTRY_BYTES));
  const sorted = Buffer.alloc(bytes.length);
  let at = 0;
  for (const group of groups) {
    for (const entry of group.sort(Buffer.compare)) {
      sorted.set(entry, at);
      at += ENTRY_BYTES;
    }
    if (group.length > 0) await nextTurn();
  }
  return sorted;
}

/** Reads entries that are sorted already. */
export function sortedLeaves(bytes: Buffer): SortedLeaves {
  const count = bytes.length / ENTRY_BYTES;
  const leafAt = (index: number): Buffer =>
    bytes.subarray(index * ENTRY_BYTES, index * ENTRY_BYTES + HASH_BYTES);
  return {
    count,
    bytes,
    leafAt,
    idAt: (index) =>
      `sp_${bytes.toString("hex", index * ENTRY_BYTES + HASH_BYTES, (index + 1) * ENTRY_BYTES)}`,
    indexOfId(usageId) {
      const id = idBytes(usageId);
      for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1))
        if (at % ENTRY_BYTES === HASH_BYTES) return (at - HASH_BYTES) / ENTRY_BYTES;
      return -1;
    },
    indexOf: (leaf) => findLeaf(count, leaf, leafAt),
  };
}

/** The place of a leaf among so many that are sorted; -1 if it is none of them. */
export function findLeaf(
  count: number,
  leaf: Uint8Array,
  leafAt: (index: number) => Buffer,
): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Buffer.compare(leafAt(middle), leaf) < 0) low = middle + 1;
    else high = middle;
  }
  return low < count && leafAt(low).equals(leaf) ? low : -1;
}
