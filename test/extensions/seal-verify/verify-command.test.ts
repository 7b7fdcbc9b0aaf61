// What `seal verify` answers of one segment, and of places where nothing proves anything.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { handMade, openLine, settleLine, textOf } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";
import { runHere } from "../../support/run-here.ts";
import { textOfFile, threeDays } from "../seals/sealed-books.ts";

const SEGMENT = "2026-03-02.0001.jsonl";
let dir: string;
let outside: string;
before(async () => {
  const books = await threeDays(2);
  dir = books.dir;
  outside = folder();
  const head = (await books.command("seal", "head", "--day", "2026-03-02")).stdout;
  const log = { event: "seal_head", day: "2026-03-02", head: "0".repeat(64) };
  const files = {
    "key.pem": (await books.command("seal", "public-key")).stdout,
    "head.json": head,
    "later.json": (await books.command("seal", "head", "--day", "2026-03-03")).stdout,
    "changed.json": head.replace('"number":1', '"number":2'),
    "log.jsonl": `${JSON.stringify(log)}\n`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(outside, name), text);
});

/** Verifies a segment of its own in a file, with a head that was kept. */
async function verified(text: string, head?: string) {
  const path = join(folder(), SEGMENT);
  writeFileSync(path, text);
  const kept = head === undefined ? [] : ["--head", join(outside, head)];
  const key = ["--public-key", join(outside, "key.pem")];
  const { code, stdout } = await runHere(["seal", "verify", path, ...key, ...kept]);
  return { code, text: stdout };
}

const whole = (): string => textOfFile(dir, `spend/${SEGMENT}`);
const cut = (lines: number): string =>
  whole()
    .split("\n")
    .slice(0, lines)
    .map((line) => `${line}\n`)
    .join("");
const unsealed = (): string => whole().replace(/,"seal":"[0-9a-f]{64}"\}/g, "}");

describe("seal verify of a segment", () => {
  it("without a head proves its chain only", async () => {
    const { code, text } = await verified(cut(4));
    assert.equal(code, 0);
    assert.match(text, /4 lines sealed, no head has the last of them yet\nnothing was changed\n$/);
  });

  it("with the head that names it proves that it is whole", async () => {
    const { code, text } = await verified(whole(), "head.json");
    assert.equal(code, 0);
    assert.match(text, /8 lines sealed, the head that was kept, of .*, has the last of them\n/);
    assert.match(text, /\ncompared with 1 heads that were kept\nnothing was changed\n$/);
  });

  it("with the head that names it finds that it was cut, or that seals were computed anew", async () => {
    const short = await verified(cut(4), "head.json");
    assert.equal(short.code, 1);
    assert.match(short.text, /line 4: is the last one, and the head .* has 8: the segment was cut/);
    const stripped = await verified(unsealed(), "head.json");
    assert.equal(stripped.code, 1);
    assert.match(stripped.text, /line 8: is not the one that the head/);
  });

  it("with heads that do not name it says so", async () => {
    for (const head of ["later.json", "log.jsonl"]) {
      const { code, text } = await verified(whole(), head);
      assert.equal(code, 0);
      assert.match(text, /\ncompared with no head: none of those that were kept names this/);
    }
  });

  it("with a head that was changed finds that", async () => {
    const { code, text } = await verified(whole(), "changed.json");
    assert.equal(code, 1);
    assert.match(text, /the head that was kept: was changed, or signed by another key/);
  });

  it("that is not sealed says that nothing is proved, and fails", async () => {
    const { code, text } = await verified(unsealed());
    assert.equal(code, 1);
    assert.match(
      text,
      /not sealed: nothing proves them\nnothing is proved: no line here is sealed\n$/,
    );
  });
});

describe("seal verify of a folder", () => {
  it("that holds no books is an error", async () => {
    const empty = folder();
    const parent = folder();
    mkdirSync(join(parent, "data/spend"), { recursive: true });
    for (const path of [empty, parent]) {
      const { code, stdout, stderr } = await runHere(["seal", "verify", path]);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /holds no books: it has none of the folders spend, usage, seals/);
    }
  });

  it("in which nothing is sealed says that nothing is proved, and fails", async () => {
    const plain = folder();
    handMade(plain, SEGMENT, textOf([openLine(1), settleLine(1)]), "let go");
    const { code, stdout } = await runHere(["seal", "verify", plain]);
    assert.equal(code, 1);
    assert.match(stdout, /\nnothing is proved: no line here is sealed\n$/);
  });
});
