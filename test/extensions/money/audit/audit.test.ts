// `audit` says whether the books are complete and correct.

import assert from "node:assert/strict";
import { appendFileSync, cpSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { folder } from "../../../support/folder.ts";
import type { Scene } from "../../../support/written-books.ts";
import * as sealed from "../../../support/sealed-books.ts";

const CLOSED = "usage/2026-01-31.jsonl";
const OPEN = "usage/2026-02-02.jsonl";

let scene: Scene;
before(async () => {
  scene = await sealed.threeDays();
});

async function audit(spoil: (dir: string) => void, over: object = {}) {
  const dir = sealed.copyOf(scene.dir);
  spoil(dir);
  const { code, stdout, stderr } = await sealed.command(dir, ["audit", "--json"], over);
  assert.notEqual(stdout, "", stderr);
  return { code, found: JSON.parse(stdout), stderr };
}

const change =
  (file: string, at: number, from: string | RegExp, to: string) =>
  (dir: string): void =>
    sealed.edit(dir, file, (lines) =>
      lines.map((line, index) => (index === at ? line.replace(from, to) : line)),
    );

describe("an audit of correct books", { concurrency: 2 }, () => {
  it("proves each request, and lists what is in flight", async () => {
    const { code, found } = await audit(() => undefined);
    assert.deepEqual([code, found.differences], [0, []]);
    const { settled, recorded, in_flight, held, cost_settled, cost_recorded, proved } = found;
    assert.deepEqual([settled, recorded, in_flight, held], [34, 34, 1, "0"]);
    assert.deepEqual(cost_settled, cost_recorded);
    assert.deepEqual(proved, {
      requests: 34,
      from: "2026-01-31T12:00:04.000Z",
      to: "2026-02-02T12:00:49.000Z",
    });
    assert.deepEqual(found.retired, { records: 0, from: null, to: null });
  });

  it("proves records of deleted segments by the lines of closed days, and says so to people", async () => {
    const young = { spend: { keep_days: 7 } };
    const { code, found } = await audit(
      (dir) => sealed.retire(dir, [sealed.A, sealed.B, sealed.C]),
      young,
    );
    assert.deepEqual([code, found.differences], [0, []]);
    assert.deepEqual([found.settled, found.retired.records, found.not_proved.records], [13, 21, 0]);
    const dir = sealed.copyOf(scene.dir);
    sealed.retire(dir, [sealed.A, sealed.B, sealed.C]);
    const { stdout } = await sealed.command(dir, ["audit"], young);
    const [sums, proved, ...others] = stdout.split("\n");
    assert.match(sums!, /^settled 13 for \S+ USD; recorded 13 for \S+ USD; in flight 1$/);
    assert.match(proved!, /^proved: 13 requests settled from \S+ to \S+$/);
    assert.match(others[0]!, /^proved by the lines of closed days: 21 records from /);
    assert.deepEqual(others.slice(1), ["the books are right", ""]);
  });

  for (const args of [["audit"], ["books", "rebuild"]])
    it(`without books is an error: ${args.join(" ")}`, async () => {
      const { code, stderr } = await sealed.command(folder(), args);
      assert.equal(code, 1);
      assert.match(stderr, /^chat-gateway: there are no books in /);
    });
});

/** What is corrupted, how, and the differences that must be found. */
const WRONG: readonly (readonly [string, (dir: string) => void, ...RegExp[]])[] = [
  [
    "altered records, with both values",
    change(CLOSED, 2, '"cost":"0.', '"cost":"9.'),
    /^usage\/2026-01-31.jsonl, line 3, and spend\/.*, line 8 \(opened in line 3\): sp_0+3: in the usage records cost is "9.*", settled as "0.*"$/,
    /^usage\/2026-01-31.jsonl, lines 1 to 13: are not those that line 1 of days.jsonl has: cost /,
  ],
  [
    "missing and doubled records of an open day",
    (dir) => sealed.edit(dir, OPEN, ([_first, second, ...lines]) => [second!, second!, ...lines]),
    /line 4 \(opened in line 1\): sp_0+29: settled, and not in usage\/2026-02-02.jsonl, line \d+$/,
    /^usage\/2026-02-02.jsonl, line 2: sp_0+2a: in the usage records, without lines of its own/,
  ],
  [
    "lines of the log that cannot be read",
    (dir) => appendFileSync(join(dir, "spend", sealed.E), "nonsense\n"),
    /^spend\/2026-02-02.0002.jsonl, line 15: is not a line of the spend log$/,
  ],
  [
    "second settle lines",
    (dir) => sealed.edit(dir, `spend/${sealed.E}`, (lines) => [...lines, lines.at(-1)!]),
    /^spend\/2026-02-02.0002.jsonl, line 15: settles sp_0+2f a second time, and does not count$/,
  ],
  [
    "records that cannot be read",
    (dir) => sealed.edit(dir, CLOSED, (lines) => ["{}", ...lines]),
    /^usage\/2026-01-31.jsonl, line 1: is not a usage record$/,
  ],
  [
    "a settle line without an open line",
    (dir) => sealed.edit(dir, `spend/${sealed.A}`, (lines) => lines.slice(1)),
    /^usage\/2026-01-31.jsonl, line 1, and spend\/\S+, line 3 \(without an open line\): sp_0+1: in /,
  ],
  [
    "requests of closed days that were never settled",
    (dir) => sealed.edit(dir, `spend/${sealed.A}`, (lines) => lines.slice(0, -1)),
    /^spend\/2026-01-31.0001.jsonl, line 15: sp_0+8: opened on 2026-01-31, never settled$/,
  ],
  [
    "records whose lines are gone, and the segment",
    (dir) => rmSync(join(dir, "spend", sealed.D)),
    /^spend\/2026-02-02.0001.jsonl: is not there: the cursor of the usage records has it$/,
    /^usage\/2026-02-02.jsonl, line 7: sp_0+1f: its lines are gone: spend\/\S+, line \d+ is not there/,
  ],
  [
    "a day whose file is gone",
    (dir) => rmSync(join(dir, CLOSED)),
    /^usage\/2026-01-31.jsonl: /,
    /: settled, and not in usage\/2026-01-31.jsonl, line 1$/,
  ],
  [
    "days.jsonl that is gone",
    (dir) => rmSync(join(dir, "days.jsonl")),
    /^days.jsonl, line 1: is gone/,
  ],
  [
    "a segment that was cut",
    (dir) => truncateSync(join(dir, "spend", sealed.A), 2_000),
    /^spend\/2026-01-31.0001.jsonl, line \d+: .* has 2000 bytes, although 7148 bytes of it were/,
    /^usage\/2026-01-31.jsonl, line 7: sp_0+7: its lines are gone: spend\/\S+, line 14 is not there/,
  ],
  [
    "a segment under two names",
    (dir) => cpSync(join(dir, "spend", sealed.A), join(dir, "spend", "2026-01-31.0009.jsonl")),
    /^the books: \/.*0009.jsonl begins with sp_0+1 like 2026-01-31.0001.jsonl: one is a copy of the other: stop/,
    /^spend\/2026-01-31.0009.jsonl: begins with sp_0+1 like 2026-01-31.0001.jsonl: one is a copy/,
  ],
  [
    "a segment that is too young to be deleted",
    (dir) => sealed.retire(dir, [sealed.A]),
    /^spend\/2026-01-31.0001.jsonl: is not there: line 1 of days.jsonl has it$/,
  ],
  [
    "a lost cursor",
    (dir) => rmSync(join(dir, "usage/cursor.json")),
    /^the books: .*cursor.json is not there, but usage records are: stop/,
    /^usage\/cursor.json: is not there$/,
  ],
  [
    "a closed day whose stored sums differ from its records",
    change("usage/2026-01-31.sums", 0, '"cost":"0.', '"cost":"9.'),
    /^the sums of 2026-01-31: are not those of its usage records: 'books rebuild' makes them anew$/,
  ],
  [
    "kept sums that cannot be read",
    (dir) => writeFileSync(join(dir, "usage/2026-01-31.sums"), "[{"),
    /2026-01-31.sums cannot be read, and 'books rebuild' makes it anew: /,
  ],
  [
    "lines of days that do not continue each other",
    change("days.jsonl", 0, /(?<="made_at":")..../, "2027"),
    /^days.jsonl, line 2: does not follow line 1: one of them was changed or moved$/,
  ],
  [
    "the line of a day that cannot be read",
    (dir) => writeFileSync(join(dir, "days.jsonl"), "{}\n"),
    /^days.jsonl, line 1: is not a closed day's line$/,
  ],
];

describe("an audit of wrong books", { concurrency: 2 }, () => {
  for (const [what, spoil, ...expected] of WRONG)
    it(`names ${what}`, async () => {
      const { code, found } = await audit(spoil);
      assert.deepEqual([code, found.ok], [1, false]);
      for (const words of expected)
        assert.ok(
          found.differences.some((text: string) => words.test(text)),
          `${words}: ${JSON.stringify(found.differences, null, 1)}`,
        );
    });

  it("counts both sides, and prints the differences for people", async () => {
    const spoil = change(CLOSED, 2, '"cost":"0.', '"cost":"9.');
    const { found } = await audit(spoil);
    assert.deepEqual([found.proved.requests, found.settled, found.recorded], [33, 34, 34]);
    assert.notDeepEqual(found.cost_settled, found.cost_recorded);
    const lost = await audit((dir) => rmSync(join(dir, "spend", sealed.D)));
    assert.equal(lost.found.not_proved.records, 6);
    const doubled = await audit((dir) =>
      sealed.edit(dir, OPEN, ([, second, ...lines]) => [second!, second!, ...lines]),
    );
    assert.deepEqual([doubled.found.settled, doubled.found.recorded], [34, 34]);
    const dir = sealed.copyOf(scene.dir);
    spoil(dir);
    const { code, stdout } = await sealed.command(dir, ["audit"]);
    assert.equal(code, 1);
    assert.match(stdout, /\nthe books are wrong:\n {2}usage\/2026-01-31.jsonl, line 3, and /);
  });
});
