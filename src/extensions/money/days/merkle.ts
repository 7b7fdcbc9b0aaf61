// A Merkle root over lines, so that one record can be proved without the others. A leaf is the
// SHA-256 of a zero byte and a line without its line end; a node is the SHA-256 of a one byte and
// its two children. Where a level has an odd number of nodes, the last one moves up unchanged.
import { createHash } from "node:crypto";

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

/** The leaf of a line. */
export const leafOf = (line: string): Buffer =>
  createHash("sha256").update(LEAF).update(line).digest();

/** The node above two others. */
const nodeOf = (left: Buffer, right: Buffer): Buffer =>
  createHash("sha256").update(NODE).update(left).update(right).digest();

/** Computes the root of leaves that are added one by one. Holds one node a level in memory. */
export interface MerkleRoot {
  /** `isProved`: hashes() will prove this leaf. Absent: false. */
  add(leaf: Buffer, isProved?: boolean): void;
  /** 64 hex digits. Without leaves: the SHA-256 of the empty string. */
  root(): string;
  /**
   * The proof: the hashes from which, with the proved leaves, the root can be computed. For each
   * level, from the leaves up, the unknown siblings of known nodes, from left to right. 64 hex
   * digits each.
   */
  hashes(): readonly string[];
}

/** A node that has no parent yet. */
interface Peak {
  /** Levels below it. */
  readonly height: number;
  readonly hash: Buffer;
  /** Whether a proved leaf is below it, so that a verifier can compute it. */
  readonly isKnown: boolean;
}

export function createMerkleRoot(): MerkleRoot {
  /** The roots of complete trees of 2^height leaves, the largest first. */
  const peaks: Peak[] = [];

  /** Joins two nodes. If a proof needs one of them, adds it to its level in `beside`. */
  function join(left: Peak, right: Peak, beside: string[][]): Peak {
    const { height } = left;
    if (left.isKnown !== right.isKnown) {
      const level = beside[height] ?? [];
      beside[height] = level;
      level.push((left.isKnown ? right : left).hash.toString("hex"));
    }
    const isKnown = left.isKnown || right.isKnown;
    return { height: height + 1, hash: nodeOf(left.hash, right.hash), isKnown };
  }

  const noted: string[][] = [];

  /** Joins all peaks, from the smallest up. A peak without a sibling moves up unchanged. */
  function finish(beside: string[][]): Peak | undefined {
    return peaks.reduceRight<Peak | undefined>(
      (right, left) => (right ? join(left, right, beside) : left),
      undefined,
    );
  }

  return {
    add(leaf, isProved = false) {
      let top: Peak = { height: 0, hash: leaf, isKnown: isProved };
      for (let last = peaks.at(-1); last?.height === top.height; last = peaks.at(-1)) {
        peaks.pop();
        top = join(last, top, noted);
      }
      peaks.push(top);
    },
    root: () => (finish([])?.hash ?? createHash("sha256").digest()).toString("hex"),
    hashes() {
      const beside = Array.from(noted, (level) => [...(level ?? [])]);
      finish(beside);
      return beside.flat();
    },
  };
}

/**
 * Computes the root of `count` leaves from the known ones, by their index, and the hashes of a
 * proof. Undefined: hashes are left over, or no leaf is known.
 */
export function rootFrom(
  count: number,
  leaves: ReadonlyMap<number, Buffer>,
  hashes: readonly string[],
): string | undefined {
  const rest = [...hashes];
  let level = new Map([...leaves].sort(([one], [other]) => one - other));
  for (let size = count; size > 1; size = Math.ceil(size / 2)) {
    const above = new Map<number, Buffer>();
    for (const [index, hash] of level) {
      const at = index ^ 1;
      if (above.has(index >> 1)) continue;
      const beside = at < size ? (level.get(at) ?? Buffer.from(rest.shift() ?? "", "hex")) : null;
      above.set(index >> 1, joined(index, hash, beside));
    }
    level = above;
  }
  return rest.length === 0 && level.size === 1 ? level.get(0)?.toString("hex") : undefined;
}

/** The parent of a node. `beside` is its sibling; null: it has none and moves up unchanged. */
function joined(index: number, hash: Buffer, beside: Buffer | null): Buffer {
  if (!beside) return hash;
  return index % 2 === 0 ? nodeOf(hash, beside) : nodeOf(beside, hash);
}
