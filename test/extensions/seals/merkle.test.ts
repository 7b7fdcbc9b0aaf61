// The hash tree: its root by a second definition, and proofs of any records of any tree.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { createLeafList } from "../../../src/extensions/seals/tree/leaf-list.ts";
import { treeOf } from "../../../src/extensions/seals/tree/day-tree.ts";
import {
  EMPTY_ROOT,
  HASH_BYTES,
  leafOf,
  proofOf,
  rootOfProof,
  type NodeAt,
} from "../../../src/extensions/seals/tree/merkle.ts";
import { createRandom } from "../../support/random.ts";

const sha = (...parts: (Uint8Array | string)[]): Buffer => {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(part);
  return digest.digest();
};

/** The root as the manual defines it. */
function rootOf(lines: readonly string[]): string {
  let level = lines.map((line) => sha(Buffer.from([0]), line)).sort(Buffer.compare);
  if (level.length === 0) return sha("").toString("hex");
  while (level.length > 1) {
    const next: Buffer[] = [];
    for (let at = 0; at < level.length; at += 2)
      next.push(level[at + 1] ? sha(Buffer.from([1]), level[at]!, level[at + 1]!) : level[at]!);
    level = next;
  }
  return level[0]!.toString("hex");
}

const linesOf = (count: number) => Array.from({ length: count }, (_, at) => `{"n":${at},"ü":"é"}`);

async function treeOfLines(lines: readonly string[]) {
  const list = createLeafList();
  lines.forEach((line, at) => {
    list.add(`sp_${at.toString(16).padStart(32, "0")}`, leafOf(line));
  });
  const tree = await treeOf(await list.sorted());
  const nodeAt: NodeAt = (level, index) =>
    level === 0
      ? tree.leaves.leafAt(index)
      : tree.levels[level - 1]!.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  return { ...tree, nodeAt };
}

describe("the hash tree of a day", () => {
  it("has the root of its definition, for every number of records", async () => {
    assert.equal((await treeOfLines([])).root, EMPTY_ROOT);
    for (let count = 0; count <= 40; count += 1)
      assert.equal((await treeOfLines(linesOf(count))).root, rootOf(linesOf(count)), `${count}`);
    assert.equal((await treeOfLines(linesOf(3_000))).root, rootOf(linesOf(3_000)));
  });

  it("finds each leaf with its id, and no other", async () => {
    const lines = linesOf(1_500);
    const { leaves } = await treeOfLines(lines);
    lines.forEach((line, at) => {
      const index = leaves.indexOf(leafOf(line));
      assert.equal(leaves.idAt(index), `sp_${at.toString(16).padStart(32, "0")}`);
    });
    assert.equal(leaves.indexOf(leafOf("another")), -1);
  });

  it("proves any records, and only with the right leaves, hashes, and number of records", async () => {
    const seed = 20_261_122;
    const { between } = createRandom(seed);
    for (let round = 0; round < 300; round += 1) {
      const count = between(1, 70);
      const { leaves, root, nodeAt } = await treeOfLines(linesOf(count));
      const size = between(1, Math.min(count, 9));
      const indices = [...new Set(Array.from({ length: size }, () => between(0, count - 1)))];
      const known = new Map(indices.map((at) => [at, leaves.leafAt(at)]));
      const hashes = proofOf(
        count,
        indices.sort((a, b) => a - b),
        nodeAt,
      );
      const where = `seed ${seed}, round ${round}`;
      assert.equal(rootOfProof(count, known, hashes), root, where);
      const [first = 0] = indices;
      const wrong = new Map(known).set(first, leafOf("another"));
      assert.notEqual(rootOfProof(count, wrong, hashes), root, where);
      assert.equal(rootOfProof(count, known, [...hashes, hashes[0] ?? root]), undefined, where);
      if (hashes.length > 0)
        assert.notEqual(rootOfProof(count, known, hashes.slice(1)), root, where);
      assert.equal(rootOfProof(count, new Map([[count, leafOf("x")]]), hashes), undefined, where);
      assert.equal(rootOfProof(count, new Map(), hashes), undefined, where);
    }
  });
});
