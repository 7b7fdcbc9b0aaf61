// Records that are added to the file of a month: none passes for one that is older than the seals.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { handMade, settleLine, openLine, textOf } from "../../support/books.ts";
import { FIRST_DAY, HOUR, sealedBooks } from "../seals/sealed-books.ts";
import { keptBooks, MONTH, type KeptBooks } from "./tampered-books.ts";

let books: KeptBooks;
before(async () => {
  books = await keptBooks();
});

/** The findings of the month's last line, if it is the first one changed, behind all others. */
async function findingsWith(change: (line: string) => string): Promise<string> {
  const findings = await books.findings((copy) => {
    const [first = ""] = copy.read(MONTH).split("\n");
    copy.write(MONTH, `${copy.read(MONTH)}${change(first)}\n`);
    copy.count();
  });
  return findings.filter((text) => text.startsWith(`${MONTH}, line 13: `)).join("\n");
}

const forged = (line: string): string =>
  line.replace(/sp_[0-9a-f]{8}/, "sp_deadbeef").replace(/"cost":"[^"]*"/, '"cost":"777"');
const older = (line: string): string => forged(line).replaceAll("2026-03-02T", "2026-03-01T");

describe("a line that was inserted behind all others", () => {
  for (const [name, change, finding] of [
    ["of a closed day", forged, /sp_deadbeef\w+ is not as it was sealed/],
    [
      "whose details end like an old record",
      (line) => `${forged(line).slice(0, -2)},"ended_at":"2020-01-01T00:00:00.000Z"}}`,
      /sp_deadbeef\w+ is not what a gateway writes/,
    ],
    ["of a day before the seals", older, /is older than the seals, but came after a head/],
    [
      "without a day",
      (line) => line.replace(/"ended_at":"[^"]*",/, ""),
      /: the line is no usage record|sp_.* is no usage record/,
    ],
    [
      "that is an empty object",
      () => "{}",
      /: the line is no usage record|sp_.* is no usage record/,
    ],
    ["that is empty", () => "", /: the line is no usage record|sp_.* is no usage record/],
    ["that is no JSON", () => "\0", /: the line is no usage record|sp_.* is no usage record/],
  ] as const satisfies readonly [string, (line: string) => string, RegExp][])
    it(`${name}: found, with its line`, async () => {
      assert.match(await findingsWith(change), finding);
    });

  it("in a month of its own that no head knows: found, with its line", async () => {
    const findings = await books.findings((copy) => {
      const [first = ""] = copy.read(MONTH).split("\n");
      const line = `${forged(first).replaceAll("2026-03-02T", "2026-02-01T")}\n`;
      copy.write("usage/2026-02.jsonl", line);
      copy.cursor((cursor) => {
        cursor.months["2026-02"] = Buffer.byteLength(line);
      });
    });
    assert.match(findings.join("\n"), /^usage\/2026-02\.jsonl, line 1: is older than the seals/);
  });
});

describe("records that are older than the seals", () => {
  it("are not proved, and nothing is wrong, also if a segment of them comes later", async () => {
    const time = new Date(FIRST_DAY - 12 * HOUR).toISOString();
    const old = (n: number): string => textOf([openLine(n, { time }), settleLine(n, { time })]);
    const { dir, requests, clock, verify } = sealedBooks();
    handMade(dir, "2026-03-01.0001.jsonl", old(1), "let go");
    await requests(1);
    clock.advance(23 * HOUR);
    await requests(1);
    assert.ok(existsSync(join(dir, "seals/heads.jsonl")));
    handMade(dir, "2026-03-01.0002.jsonl", old(2), "let go");
    await requests(1);
    const { findings, months } = await verify();
    assert.deepEqual(findings, []);
    assert.deepEqual([months[0].by_head, months[0].by_log, months[0].not_proved], [2, 4, 2]);
  });
});
