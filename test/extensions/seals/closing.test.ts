// Days that cannot be closed as they should: what is reported, and that no segment is deleted that
// a head still needs.

import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { segmentPath, segments } from "../../support/books.ts";
import { HOUR, sealedBooks, threeDays, type SealedBooks } from "./sealed-books.ts";

const faults = (books: SealedBooks): string[] =>
  books.events
    .filter(({ level }) => level === "error")
    .map(({ event, detail }) => `${String(event)}: ${String(detail)}`);

/** Four days pass, and segments look as old as they are by then. */
async function grow(books: SealedBooks): Promise<void> {
  for (let times = 0; times < 4; times += 1) {
    for (const name of segments(books.dir)) utimesSync(segmentPath(books.dir, name), 1, 1);
    books.clock.advance(23 * HOUR);
    await books.serve(async () => undefined);
  }
}

describe("a day that cannot be closed", () => {
  it("keeps its segments, however old, until it can", async () => {
    const books = sealedBooks({ spend: { keep_days: 1 } });
    await books.requests(2);
    const key = join(books.dir, "keys.seal");
    writeFileSync(key, "no key");
    await grow(books);
    assert.equal(segments(books.dir).length, 1);
    assert.equal(existsSync(join(books.dir, "seals/heads.jsonl")), false);
    assert.match(faults(books)[0]!, /^seal_head_failed: .*keys.seal is not 64 hexadecimal digits/);
    rmSync(key);
    await grow(books);
    assert.deepEqual(segments(books.dir), []);
    const { ok, months } = await books.verify();
    assert.deepEqual([ok, months[0].by_head, months[0].not_proved], [true, 4, 0]);
  });

  it("because the heads before were changed: nothing is written behind them", async () => {
    const books = await threeDays(1);
    const file = join(books.dir, "seals/heads.jsonl");
    const changed = readFileSync(file, "utf8").replace('"number":2', '"number":3');
    writeFileSync(file, changed);
    books.clock.advance(23 * HOUR);
    await books.serve(async () => undefined);
    assert.equal(readFileSync(file, "utf8"), changed);
    assert.match(faults(books)[0]!, /^seal_head_failed: .*heads.jsonl, line 2, does not continue/);
  });

  it("waits while the clock may be wrong", async () => {
    const books = sealedBooks();
    await books.requests(1);
    books.clock.advance(40 * 24 * HOUR);
    await books.serve(async () => undefined);
    assert.equal(existsSync(join(books.dir, "seals")), false);
    books.clock.advance(23 * HOUR);
    await books.serve(async () => undefined);
    assert.equal(existsSync(join(books.dir, "seals")), false);
    books.clock.advance(2 * HOUR);
    await books.serve(async () => undefined);
    const heads = readFileSync(join(books.dir, "seals/heads.jsonl"), "utf8").split("\n");
    assert.equal(heads.length - 1, 41);
    assert.deepEqual((await books.verify()).findings, []);
  });
});

describe("a day that is closed although something is wrong", () => {
  it("reports each line that breaks its chain", async () => {
    const books = sealedBooks();
    await books.requests(2);
    const [name = ""] = segments(books.dir);
    const path = segmentPath(books.dir, name);
    writeFileSync(path, readFileSync(path, "utf8").replace('"key_0123', '"key_9123'));
    books.clock.advance(23 * HOUR);
    await books.serve(async () => undefined);
    const broken = faults(books).filter((text) => text.startsWith("seal_broken"));
    assert.equal(broken.length, 1);
    const expected = `seal_broken: spend/${name}, line 1: was changed, or lines before it were`;
    assert.ok(broken[0]!.startsWith(expected), broken[0]);
    const { findings } = await books.verify();
    assert.ok(findings.some((text) => text.startsWith(`spend/${name}, line 1: was changed`)));
  });

  it("reports that the key is another", async () => {
    const books = await threeDays(1);
    rmSync(join(books.dir, "keys.seal"));
    books.clock.advance(23 * HOUR);
    await books.serve(async () => undefined);
    assert.match(faults(books)[0]!, /^seal_broken: keys.seal is not the key that signed the heads/);
    const { findings } = await books.verify();
    assert.deepEqual(findings, [
      "seals/heads.jsonl, line 3: was changed, or signed by another key: its signature is not that of the key",
    ]);
  });
});
