// Segments as a whole: anybody can compute a chain, so what was inserted into a closed day is found
// by what its head has. Segments that have another name, or are gone, are told.

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { NO_SEAL, sealOf, splitSeal, withSeal } from "../../../src/extensions/seals/chain/chain.ts";
import { keptBooks, type Copy, type KeptBooks } from "./tampered-books.ts";

let books: KeptBooks;
before(async () => {
  books = await keptBooks();
});

const FIRST = "spend/2026-03-02.0001.jsonl";
const SECOND = "spend/2026-03-03.0001.jsonl";

/** The first request of a segment with another id and cost, sealed behind the line `previous`. */
function forge(copy: Copy, previous: string): string {
  let seal = previous;
  const lines = copy.read(FIRST).split("\n").slice(0, 4);
  const about = lines.filter((line) => line.includes(JSON.parse(lines[0]!).spend_id));
  return about
    .map((line) => {
      const body = splitSeal(line)!
        .body.replace(/sp_[0-9a-f]{8}/, "sp_deadbeef")
        .replace(/,"chain":.*/, ',"chain":{"previous":[]}}')
        .replace(/"cost":"[^"]*"/, '"cost":"5"');
      seal = sealOf(seal, body);
      return `${withSeal(body, seal)}\n`;
    })
    .join("");
}

describe("a request that was inserted into a closed day with a good chain", () => {
  it("in a segment of its own: found, with its line", async () => {
    for (const name of ["2026-03-02.0007", "2026-03-04.0007", "2026-02-01.0001"]) {
      const findings = await books.findings((copy) =>
        copy.write(`spend/${name}.jsonl`, forge(copy, NO_SEAL)),
      );
      assert.equal(findings.length, 1, findings.join("\n"));
      assert.match(findings[0]!, new RegExp(`^spend/${name}\\.jsonl, line 2: settles sp_deadbeef`));
      assert.match(findings[0]!, /which ended on 2026-03-02, and no head has it/);
    }
  });

  it("behind the last line of a segment: found, with its line", async () => {
    const findings = await books.findings((copy) => {
      const lines = copy.read(FIRST).split("\n");
      copy.write(FIRST, `${copy.read(FIRST)}${forge(copy, splitSeal(lines.at(-2)!)!.seal)}`);
    });
    assert.equal(findings.length, 1, findings.join("\n"));
    assert.match(findings[0]!, /^spend\/2026-03-02\.0001\.jsonl, line 10: settles sp_deadbeef/);
  });
});

describe("segments under other names", () => {
  it("a copy of a segment is found", async () => {
    const findings = await books.findings((copy) =>
      copy.write("spend/2026-03-03.0002.jsonl", copy.read(FIRST)),
    );
    assert.deepEqual(findings, [
      "spend/2026-03-03.0002.jsonl: begins as spend/2026-03-02.0001.jsonl does: " +
        "one is a copy of the other",
    ]);
  });

  it("two segments with each other's names are told with those that heads have", async () => {
    const { code, text } = await books.printed((copy) => {
      const first = copy.read(FIRST);
      copy.write(FIRST, copy.read(SECOND));
      copy.write(SECOND, first);
    });
    assert.equal(code, 0);
    assert.match(
      text,
      new RegExp(`^${FIRST}: 8 lines sealed, .*; heads know it as ${SECOND}$`, "m"),
    );
    assert.match(
      text,
      new RegExp(`^${SECOND}: 8 lines sealed, .*; heads know it as ${FIRST}$`, "m"),
    );
  });
});

describe("a segment of a closed day that is gone", () => {
  it("is told, with the head that proved it", async () => {
    const { ok, gone } = await books.after((copy) => copy.remove(FIRST));
    assert.equal(ok, true);
    assert.deepEqual(gone, [{ file: FIRST, lines: 8, head: "the head of 2026-03-02" }]);
    const { text } = await books.printed((copy) => copy.remove(FIRST));
    const told = `${FIRST}: gone; 8 lines were proved by the head of 2026-03-02 until it was deleted`;
    assert.ok(text.includes(`\n${told}\n`), text);
  });
});
