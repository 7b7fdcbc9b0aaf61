// A Merkle root over lines, so that one record can be proved without the others. A leaf is the
// SHA-256 of a zero byte and a line without its line end; a node is the SHA-256 of a one byte and
// its two children. Where a level has an odd number of nodes, the last one moves up as it is.
import { createHash } from "node:crypto";

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

/** The leaf of a line. */
export const leafOf = (line: string): Buffer =>
  createHash("sha256").update(LEAF).update(line).digest();

/** The node above two others. */
export const nodeOf = (left: Buffer, right: Buffer): Buffer =>
  createHash("sha256").update(NODE).update(left).update(right).digest();

/** Makes the root of leaves that come one by one, in the memory of one branch. */
export interface MerkleRoot {
  add(leaf: Buffer): void;
  /** 64 hex digits. Of no leaves: the SHA-256 of nothing. */
  root(): string;
}

export function createMerkleRoot(): MerkleRoot {
  /** The roots of whole trees, the largest first; a tree of 2^height leaves each. */
  const peaks: { readonly height: number; readonly hash: Buffer }[] = [];
  return {
    add(leaf) {
      let top = { height: 0, hash: leaf };
      for (let last = peaks.at(-1); last?.height === top.height; last = peaks.at(-1)) {
        peaks.pop();
        top = { height: top.height + 1, hash: nodeOf(last.hash, top.hash) };
      }
      peaks.push(top);
    },
    root() {
      const hashes = peaks.map(({ hash }) => hash);
      let root = hashes.pop();
      for (let left = hashes.pop(); root && left; left = hashes.pop()) root = nodeOf(left, root);
      return (root ?? createHash("sha256").digest()).toString("hex");
    },
  };
}

/** A step from a leaf to the root: the node beside it, and on which side that stands. */
export interface ProofStep {
  readonly side: "left" | "right";
  /** 64 hex digits. */
  readonly hash: string;
}

/** The steps from the leaf at `index` to the root. */
export function proofOf(leaves: readonly Buffer[], index: number): readonly ProofStep[] {
  const steps: ProofStep[] = [];
  let level = leaves;
  for (let at = index; level.length > 1; at = at >> 1) {
    const beside = level[at ^ 1];
    if (beside) steps.push({ side: at % 2 === 0 ? "right" : "left", hash: beside.toString("hex") });
    level = Array.from({ length: Math.ceil(level.length / 2) }, (_, pair) => {
      const [left, right] = [level[pair * 2]!, level[pair * 2 + 1]];
      return right ? nodeOf(left, right) : left;
    });
  }
  return steps;
}

/** The root that a line and its steps lead to. */
export function rootFrom(line: string, steps: readonly ProofStep[]): string {
  let hash = leafOf(line);
  for (const { side, hash: hex } of steps) {
    const beside = Buffer.from(hex, "hex");
    hash = side === "left" ? nodeOf(beside, hash) : nodeOf(hash, beside);
  }
  return hash.toString("hex");
}
