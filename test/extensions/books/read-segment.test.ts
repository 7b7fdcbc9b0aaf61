// What the lines of a segment come to, and what is wrong with them.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { decisive, readSegment } from "../../../src/extensions/books/spend-log/read-segment.ts";
import type { SettleRecord } from "../../../src/extensions/books/spend-log/records.ts";
import { openLine, settleLine, spendId, textOf, type Line } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";

const interrupted = (n: number): Line => settleLine(n, { status: "interrupted" });

async function read(lines: readonly (Line | string)[], rest = "") {
  const path = join(folder(), "segment.jsonl");
  writeFileSync(path, textOf(lines) + rest);
  const settled: (readonly [string, string])[] = [];
  const problems: string[] = [];
  const content = await readSegment(path, {
    settled: (record) => settled.push([record.spend_id, record.status]),
    problem: (text) => problems.push(text),
  });
  return { ...content, settled, problems };
}

describe("readSegment", () => {
  it("gives each settled request once, and keeps those that are not settled", async () => {
    const { settled, unsettled, problems, recovered } = await read([
      openLine(1),
      openLine(2),
      settleLine(1),
    ]);
    assert.deepEqual(settled, [[spendId(1), "completed"]]);
    assert.deepEqual([[...unsettled.keys()], problems, recovered], [[spendId(2)], [], false]);
  });

  for (const [order, lines] of [
    ["before", [interrupted(1), settleLine(1)]],
    ["after", [settleLine(1), interrupted(1)]],
  ] as const) {
    it(`lets the request's own process win over an "interrupted" ${order} it`, async () => {
      const { settled, problems, recovered } = await read([openLine(1), ...lines]);
      assert.deepEqual(settled, [[spendId(1), "completed"]]);
      assert.deepEqual([problems, recovered], [[], false]);
    });
  }

  it("gives a request of which all lines say interrupted, and says that it was recovered", async () => {
    const { settled, recovered } = await read([openLine(1), interrupted(1)]);
    assert.deepEqual([settled, recovered], [[[spendId(1), "interrupted"]], true]);
  });

  it("ends after the last whole line", async () => {
    const { end } = await read([openLine(1)], '{"type":"settle"');
    assert.equal(end, Buffer.byteLength(textOf([openLine(1)])));
  });

  const PROBLEMS: [what: string, lines: (Line | string)[], problem: RegExp][] = [
    ["a request opened twice", [openLine(1), openLine(1)], /: opened twice$/],
    ["a request settled twice", [openLine(1), settleLine(1), settleLine(1)], /: settled twice$/],
    [
      "a request interrupted twice",
      [openLine(1), interrupted(1), interrupted(1)],
      /: settled twice$/,
    ],
    ["a request that was never opened", [settleLine(1)], /: settled, never opened$/],
    [
      "an account that changes",
      [openLine(1), settleLine(1, { account: "beta" })],
      /: account is "acme" when opened, settled as "beta"$/,
    ],
    ["a line of something else", ["garbage"], /^line 1 cannot be read$/],
  ];
  for (const [what, lines, problem] of PROBLEMS) {
    it(`reports ${what}`, async () => {
      const { problems } = await read(lines);
      assert.equal(problems.length, 1);
      assert.match(problems[0]!, problem);
    });
  }

  it("counts a request whose settle line is garbled as neither settled nor unsettled", async () => {
    const { garbled, settled, unsettled } = await read([
      openLine(1),
      settleLine(1, { cost: "none" }),
    ]);
    assert.deepEqual([[...garbled], settled, unsettled.size], [[spendId(1)], [], 1]);
  });
});

it("decisive keeps the first of two lines of the same kind", () => {
  const first = settleLine(1) as SettleRecord;
  const second = settleLine(1, { cost: "9" }) as SettleRecord;
  const other = interrupted(1) as SettleRecord;
  assert.equal(decisive(first, second), first);
  assert.equal(decisive(first, other), first);
  assert.equal(decisive(other, second), second);
});
