// The chain of the spend log, checked by a verifier of its own that has nothing of the program.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  handMade,
  openLine,
  segmentPath,
  segments,
  settleLine,
  textOf,
} from "../../support/books.ts";
import { splitSeal, withSeal } from "../../../src/extensions/seals/chain/chain.ts";
import { firstLine, lastLine } from "../../../src/extensions/seals/chain/segment-ends.ts";
import { folder } from "../../support/folder.ts";
import { blocksOf } from "../../support/readme.ts";
import {
  FIRST_DAY,
  HOUR,
  sealedBooks,
  settleOne,
  settlement,
  type SealedBooks,
} from "./sealed-books.ts";

/** The verifier of the manual: returns the seal of the last line, and fails where one is wrong. */
function lastSealOf(path: string): string {
  let previous = "0".repeat(64);
  for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
    const [, start = "", seal] =
      /^(.*),"seal":"([0-9a-f]{64})"\}$/s.exec(line) ?? assert.fail(line);
    const expected = createHash("sha256").update(`${previous}${start}}`).digest("hex");
    assert.equal(seal, expected);
    previous = seal!;
  }
  return previous;
}

const previousIn = (path: string) =>
  JSON.parse(readFileSync(path, "utf8").split("\n")[0]!).chain.previous;

describe("the seal of a line", () => {
  it("is taken off again, and nothing else is taken for one", () => {
    const seal = "0123456789abcdef".repeat(4);
    assert.deepEqual(splitSeal(withSeal('{"a":1}', seal)), { body: '{"a":1}', seal });
    for (const line of [
      "",
      "{}",
      '{"a":1}',
      `{"seal":"${seal}"}`,
      `{"a":1,"seal":"${seal.toUpperCase()}"}`,
      `{"a":1,"seal":"${seal}0"}`,
      `{"a":1,"seal":"${seal}"} `,
    ])
      assert.equal(splitSeal(line), undefined, line);
  });
});

describe("the ends of a segment", () => {
  it("are found in files of any size, lines longer than a step included", () => {
    const path = join(folder(), "segment");
    for (const [text, first, last] of [
      ["", undefined, undefined],
      ["torn", undefined, undefined],
      ["one\n", "one", "one"],
      ["one\ntorn", "one", "one"],
      ["one\ntwo\n", "one", "two"],
      [
        `${"a".repeat(50_000)}\n${"b".repeat(70_000)}\ntorn`,
        "a".repeat(50_000),
        "b".repeat(70_000),
      ],
    ] as const) {
      writeFileSync(path, text);
      assert.deepEqual([firstLine(path), lastLine(path)], [first, last], text.slice(0, 20));
    }
    writeFileSync(path, "one\ntwo\nthree\n");
    assert.equal(lastLine(path, 8), "two");
  });
});

describe("the chain of a segment", () => {
  it("holds each line, in the order of the file", async () => {
    const books = sealedBooks();
    await books.requests(5);
    const [name, ...others] = segments(books.dir);
    assert.deepEqual(others, []);
    lastSealOf(segmentPath(books.dir, name));
    assert.deepEqual(previousIn(segmentPath(books.dir, name)), []);
    assert.deepEqual((await books.verify()).segments, [
      { file: `spend/${name}`, lines: 20, sealed: 20, head: null, unsealed: 0, torn_bytes: 0 },
    ]);
  });

  it("is verified by the program in the manual, which finds a changed line", async () => {
    const books = sealedBooks();
    await books.requests(2);
    const path = segmentPath(books.dir);
    const program = join(books.dir, "verify.mjs");
    writeFileSync(program, blocksOf("js", "seals")[0]!);
    const verify = () => spawnSync(process.execPath, [program, path], { encoding: "utf8" });
    assert.equal(verify().stdout, `${lastSealOf(path)}\n`);
    writeFileSync(path, readFileSync(path, "utf8").replace('"odd"', '"eve"'));
    const { status, stderr } = verify();
    assert.equal(status, 1);
    assert.match(stderr, /Error: wrong: \{"type":"settle"/);
  });

  it("begins with the last seal of the segment before: after a restart, at a full segment, on a new day", async () => {
    const books = sealedBooks({ spend: { segment_bytes: 1_024 } });
    await books.requests(1);
    await books.serve(async (ledger) => {
      await settleOne(ledger, "acme", 7);
      await settleOne(ledger, "acme", 8);
      books.clock.advance(1_000);
      await until(books, () => segments(books.dir).length === 3);
      await settleOne(ledger, "acme", 9);
      books.clock.advance(14 * HOUR);
      await until(books, () => segments(books.dir).at(-1)!.startsWith("2026-03-03"));
      await settleOne(ledger, "acme", 10);
    });
    const written = segments(books.dir).filter(
      (name) => statSync(segmentPath(books.dir, name)).size > 0,
    );
    assert.equal(written.length, 4);
    const [a, b, c, d] = written as [string, string, string, string];
    const tip = (segment: string) => ({
      segment,
      seal: lastSealOf(segmentPath(books.dir, segment)),
    });
    assert.deepEqual(previousIn(segmentPath(books.dir, b)), [tip(a)]);
    assert.deepEqual(previousIn(segmentPath(books.dir, c)), [tip(b)]);
    // The second segment is named again if it was closed after the third had begun.
    const named = previousIn(segmentPath(books.dir, d));
    assert.deepEqual(named, named.length > 1 ? [tip(b), tip(c)] : [tip(c)]);
    assert.equal((await books.verify()).ok, true);
  });

  it("names a segment again that got lines after the next one had begun", async () => {
    const books = sealedBooks({ spend: { segment_bytes: 1_024 } });
    await books.serve(async (ledger) => {
      const request = {
        requestId: "slow",
        account: "acme",
        keyId: "k",
        modelRequested: "m",
        stream: false,
      };
      const slow = ledger.open(request);
      await slow.opened;
      for (let tokens = 1; tokens < 4; tokens += 1) await settleOne(ledger, "acme", tokens);
      books.clock.advance(1_000);
      await until(books, () => segments(books.dir).length === 2);
      for (let tokens = 4; tokens < 7; tokens += 1) await settleOne(ledger, "acme", tokens);
      await slow.settle(settlement(9));
      books.clock.advance(1_000);
      await until(books, () => segments(books.dir).length === 3);
      await settleOne(ledger, "acme", 8);
    });
    const [a, b, c] = segments(books.dir).map((name) => segmentPath(books.dir, name));
    assert.notEqual(previousIn(b!)[0].seal, lastSealOf(a!));
    const seals = previousIn(c!).map(({ seal }: { seal: string }) => seal);
    assert.deepEqual(seals, [lastSealOf(a!), lastSealOf(b!)]);
    assert.equal((await books.verify()).ok, true);
  });

  it("goes on after a process that died: the torn line is told, and the recovery continues the chain", async () => {
    const books = sealedBooks();
    await books.requests(2);
    const [name = ""] = segments(books.dir);
    const path = segmentPath(books.dir, name);
    // The last settle line is torn, as if the process had died while it wrote.
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.slice(0, -20));
    writeFileSync(path.replace("jsonl", "open"), "");
    const torn = await books.verify();
    assert.equal(torn.ok, false, "the usage records have the request whose line is torn");
    assert.equal(torn["segments"][0].sealed, 7);
    assert.ok(torn["segments"][0].torn_bytes > 100);
    await books.serve(async () => undefined);
    assert.equal(readFileSync(path, "utf8").split("\n").length, 9);
    lastSealOf(path);
  });

  it("a copied data_dir whose process died in the middle of a line verifies, with the torn line told", async () => {
    const books = sealedBooks();
    await books.requests(2);
    const [name = ""] = segments(books.dir);
    appendFileSync(segmentPath(books.dir, name), '{"type":"open","spend_id":"sp_');
    const { ok, segments: proofs } = await books.verify();
    assert.deepEqual([ok, proofs[0].sealed, proofs[0].torn_bytes], [true, 8, 30]);
  });
});

describe("seals that are switched on, off and on again", () => {
  it("old segments are told as not sealed, and nothing is wrong", async () => {
    const books = sealedBooks();
    const day = new Date(FIRST_DAY).toISOString().slice(0, 10);
    const time = new Date(FIRST_DAY + HOUR).toISOString();
    const old = [openLine(1, { time }), settleLine(1, { time })];
    handMade(books.dir, `${day}.0001.jsonl`, textOf(old), "let go");
    await books.requests(1);
    const { ok, segments: proofs, months } = await books.verify();
    assert.equal(ok, true);
    assert.deepEqual(
      proofs.map(({ sealed, unsealed }: Record<string, number>) => [sealed, unsealed]),
      [
        [0, 2],
        [4, 0],
      ],
    );
    assert.deepEqual([months[0].by_log, months[0].not_proved], [2, 1]);
  });

  it("a segment that a gateway without seals recovers ends with lines without a seal", async () => {
    const books = sealedBooks();
    await books.requests(1);
    const [name = ""] = segments(books.dir);
    const path = segmentPath(books.dir, name);
    const text = readFileSync(path, "utf8").split("\n").slice(0, 3).join("\n");
    writeFileSync(path, `${text}\n`);
    writeFileSync(path.replace("jsonl", "open"), "");
    const off = sealedBooks({ data_dir: books.dir, seals: { enabled: false } });
    await off.requests(1);
    const { segments: proofs } = await books.verify();
    assert.deepEqual([proofs[0].sealed, proofs[0].unsealed], [3, 1]);
    assert.deepEqual([proofs[1].sealed, proofs[1].unsealed], [0, 4]);
    await books.requests(1);
    const after = await books.verify();
    assert.equal(after["segments"][2].sealed, 4);
    const chain = after.findings.filter((text) => text.startsWith("spend/"));
    assert.deepEqual(chain, []);
  });
});

/** Lets seconds pass until the log has looked whether it is time for another segment. */
async function until({ clock }: SealedBooks, isDone: () => boolean): Promise<void> {
  const deadline = performance.now() + 5_000;
  for (let turns = 1; !isDone(); turns += 1) {
    if (performance.now() > deadline) assert.fail("it does not happen within five seconds");
    if (turns % 100 === 0) clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
