// The proof in a receipt, checked by what the manual says of it alone: the leaf is made of the line
// of the month's file, and the hashes lead from it to the root that the head of the day signed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { demo, json, startGateway } from "../../support/gateway.ts";
import { filesOf, textOfFile, threeDays, type SealedBooks } from "./sealed-books.ts";

const sha256 = (...parts: (string | Buffer)[]): Buffer =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();

/** The root of a tree of so many leaves in which one leaf, at `index`, is known. */
function rootOf(count: number, index: number, leaf: Buffer, hashes: string[]): Buffer {
  // The levels have these numbers of nodes, from the leaves up.
  const sizes = [count];
  while (sizes.at(-1)! > 1) sizes.push(Math.ceil(sizes.at(-1)! / 2));
  const given = [...hashes];
  const node = (level: number, at: number): Buffer => {
    const isAbove = Math.floor(index / 2 ** level) === at;
    if (!isAbove) return Buffer.from(given.shift()!, "hex");
    if (level === 0) return leaf;
    const left = node(level - 1, 2 * at);
    if (2 * at + 1 >= sizes[level - 1]!) return left;
    const right = node(level - 1, 2 * at + 1);
    return sha256(Buffer.of(1), left, right);
  };
  const root = node(sizes.length - 1, 0);
  assert.deepEqual(given, [], "every hash is used");
  return root;
}

/** Each line of the months' files, by its usage_id. */
const recordLines = ({ dir }: SealedBooks): Map<string, string> =>
  new Map(
    filesOf(dir, "usage")
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => textOfFile(dir, name).trimEnd().split("\n"))
      .map((line) => [JSON.parse(line).usage_id as string, line]),
  );

async function serve(t: TestContext, books: SealedBooks) {
  const gateway = await startGateway(
    t,
    demo({
      data_dir: books.dir,
      seals: { enabled: true },
      accounts: { acme: {}, beta: {} },
      keys: [
        { account: "acme", key: "sk-acme" },
        { account: "beta", key: "sk-beta" },
      ],
    }),
  );
  return async (id: string, account = "acme") => {
    const response = await fetch(`${gateway.url}/v1/requests/${encodeURIComponent(id)}`, {
      headers: { authorization: `Bearer sk-${account}` },
    });
    return { status: response.status, body: await json(response) };
  };
}

describe("the seal of a receipt", () => {
  it("proves each record of the days that have a head, and is null before", async (t) => {
    const books = await threeDays(5);
    const heads = readFileSync(join(books.dir, "seals", "heads.jsonl"), "utf8")
      .trimEnd()
      .split("\n");
    assert.equal(heads.length, 2);
    const lines = recordLines(books);
    assert.equal(lines.size, 30);
    const receiptOf = await serve(t, books);
    let proved = 0;
    for (const line of lines.values()) {
      const record = JSON.parse(line);
      const { status, body } = await receiptOf(record.gateway_request_id, record.account);
      assert.equal(status, 200);
      const [{ seal, spend_id }] = body.data;
      assert.equal(spend_id, record.usage_id);
      const day = record.ended_at.slice(0, 10);
      const head = heads.find((each) => JSON.parse(each).day === day);
      if (head === undefined) {
        assert.equal(seal, null, "its day has no head yet");
        continue;
      }
      const columns = line
        .replace(/,"details":\{.*\}\}$/, "}")
        .replace(/,"cache_write_tokens":0\}$/, "}");
      const leaf = sha256(Buffer.of(0), columns);
      const { root, records } = JSON.parse(head);
      assert.deepEqual(
        { type: seal.type, day: seal.day, head: seal.head, records: seal.records, leaf: seal.leaf },
        {
          type: "head",
          day,
          head: sha256(head).toString("hex"),
          records,
          leaf: leaf.toString("hex"),
        },
      );
      assert.equal(rootOf(records, seal.index, leaf, seal.hashes).toString("hex"), root);
      proved += 1;
    }
    assert.equal(proved, 20);
    const [id] = [...lines.values()].map((line) => JSON.parse(line).gateway_request_id as string);
    const other = JSON.parse([...lines.values()][0]!).account === "acme" ? "beta" : "acme";
    assert.equal((await receiptOf(id!, other)).status, 404);
  });
});
