// Settled requests become usage records of their day, and past days are closed.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { BooksFault, createDays } from "../../../../src/extensions/money/days/index.ts";
import { replaceFile } from "../../../../src/extensions/scale/data-files/index.ts";
import { linesOf, openLine, settleLine, spendId, usageFile } from "../../../support/books.ts";
import type { Line } from "../../../support/books.ts";
import { folder } from "../../../support/folder.ts";
import { createScene, request, type Scene } from "../../../support/written-books.ts";

const A = "2026-01-31.0001.jsonl";
const B = "2026-01-31.0002.jsonl";
const NOON = "2026-01-31T12:00:00.000Z";
const NEXT_NOON = "2026-02-01T12:00:00.000Z";
/** The closed days, each with its number of records. */
const closedDays = (at: Scene): unknown[] => at.closed().map(({ day, records }) => [day, records]);
const sha256 = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex");

describe("the usage records of the spend log", () => {
  it("closes no day on which an unsettled request began", async () => {
    const at = createScene({ recovers: false });
    at.write(A, openLine(1, { time: NOON }));
    at.write(B, openLine(2, { time: "2026-02-01T11:00:00.000Z" }));
    await at.passUntil(NEXT_NOON);
    assert.deepEqual(at.closed(), []);
    at.write(A, request(1, NOON, NEXT_NOON)[1]);
    await at.pass();
    assert.deepEqual(closedDays(at), [["2026-01-31", 0]]);
    await at.passUntil("2026-02-02T11:00:00.000Z");
    assert.equal(at.closed().length, 1, "request 2 began on February 1");
    at.write(B, request(2, "2026-02-01T11:00:00.000Z", "2026-02-02T09:00:00.000Z")[1]);
    await at.pass();
    assert.deepEqual(closedDays(at), [
      ["2026-01-31", 0],
      ["2026-02-01", 1],
    ]);
  });

  it("closes a day only if the pass began after its last possible request", async () => {
    const at = createScene({ recovers: false, now: "2026-01-31T23:59:59.000Z" });
    at.write(A, ...request(1, NOON));
    await at.passUntil("2026-02-01T00:00:05.000Z");
    assert.deepEqual(at.closed(), []);
    await at.passUntil("2026-02-01T00:00:10.000Z");
    assert.equal(at.closed().length, 1);
  });

  for (const [what, spoil] of [
    ["lost", (path: string) => rmSync(path)],
    ["cut short", (path: string) => truncateSync(path, 17)],
  ] as const)
    it(`reports that the index of a month is ${what}, and searches no index that has only later days`, async () => {
      const at = createScene({ recovers: false });
      at.write(A, ...request(1, "2026-02-01T12:00:00.000Z"));
      await at.passUntil("2026-02-02T12:00:00.000Z");
      const index = `${at.dir}/usage/2026-02.ids`;
      const whole = readFileSync(index);
      spoil(index);
      at.write("2026-02-02.0001.jsonl", ...request(2, "2026-02-02T12:00:00.000Z"));
      await at.pass();
      await at.books.store.finish("2026-02-02");
      await assert.rejects(at.books.store.find({ requestId: "request 1", limit: 1 }), BooksFault);
      await at.passUntil("2026-02-03T12:00:00.000Z");
      const { faults } = await at.pass();
      const told = faults.map(({ event }) => event);
      assert.deepEqual(told, ["usage_index_lost"]);
      for (const id of ["request 1", "request 2"])
        await assert.rejects(
          at.books.store.find({ requestId: id, limit: 1 }),
          /2026-02\.ids, .*, is not there or was cut short: run 'books rebuild'/,
        );
      for (const day of ["2026-02-01", "2026-02-02"]) await at.books.store.finish(day);
      assert.deepEqual((await at.pass()).faults, []);
      assert.equal(readFileSync(index).length, 2 * whole.length);
    });

  it("lists a segment in a day's line again only if it has grown, and prints each line", async () => {
    const at = createScene({ recovers: false });
    at.write(A, ...request(1, NOON));
    await at.pass();
    await at.passUntil("2026-02-02T12:00:00.000Z");
    at.write(A, ...request(2, "2026-02-02T12:00:00.000Z"));
    await at.pass();
    await at.passUntil("2026-02-03T12:00:00.000Z");
    const texts = readFileSync(`${at.dir}/days.jsonl`, "utf8").split("\n").slice(0, -1);
    const segments = at.closed().map((day) => day["segments"] as Line[]);
    const counts = segments.map((listed) => listed.map(({ lines }) => lines));
    assert.deepEqual(counts, [[2], [], [4]]);
    const told = at.events.map(({ event, line }) => [event, line]);
    assert.deepEqual(
      told,
      texts.map((text) => ["day_closed", text]),
    );
  });

  it("opens the books on the first day with any content", async () => {
    const at = createScene({ now: "2026-02-03T12:00:00.000Z", recovers: false });
    await at.pass();
    assert.deepEqual(at.closed(), []);
    at.write(A, ...request(1, "2026-01-30T12:00:00.000Z"));
    await at.pass();
    const days = ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"];
    const closed = at.closed().map(({ day }) => day);
    assert.deepEqual(closed, days);
  });
});

it("names a file for which the disk has no room", async () => {
  const [lines, file] = [join(folder(), "days.jsonl"), join(folder(), "file")];
  for (const path of [lines, `${file}.new`]) symlinkSync("/dev/full", path);
  const message = "ENOSPC: no space left on device, write";
  await assert.rejects(createDays(lines).append("{}"), { message: `${message} ${lines}` });
  await assert.rejects(replaceFile(file, "{}"), { message: `${message} ${file}.new` });
});

it("reads closed days once, however many close at once", async () => {
  const at = createScene({ recovers: false });
  at.write(A, ...request(1, NOON));
  await at.passUntil(NEXT_NOON);
  const path = `${at.dir}/days.jsonl`;
  const days = createDays(path);
  const [first] = days.all();
  await days.append(JSON.stringify({ ...first!.closed, day: "2026-02-01", number: 2 }));
  assert.equal(days.all()[0], first, "the same object: its line was not parsed again");
  assert.deepEqual(days.all(), createDays(path).all());
});

it("reads a closed day while it is still written", async () => {
  const at = createScene({ recovers: false });
  at.write(A, ...request(1, NOON));
  await at.passUntil(NEXT_NOON);
  const days = createDays(`${at.dir}/days.jsonl`);
  const [first] = days.all();
  const line = JSON.stringify({ ...first!.closed, day: "2026-02-01", number: 2 });
  const appended = days.append(line);
  while (days.all().length === 1) await turn();
  await appended;
  assert.deepEqual(
    days.all().map(({ text }) => text),
    [first!.text, line],
  );
});

describe("invalid lines of the spend log", () => {
  const [open, settle] = request(1, NOON);
  const second = { ...settle, cost: "99" };
  const CASES: readonly (readonly [string, readonly (Line | string)[], readonly string[]])[] = [
    [
      "a second settle line",
      [open, settle, second],
      [`line 3 settles ${spendId(1)} a second time, and does not count`],
    ],
    [
      "a request that is opened twice",
      [open, open, settle, open],
      [2, 4].map((line) => `line ${line} opens ${spendId(1)} a second time`),
    ],
    ["a settle line whose open line is gone", [settle], []],
    [
      "lines that cannot be read",
      ["{", open, "", '{"type":"note"}', settle, "\u0000\u0000"],
      [1, 3, 4, 6].map((line) => `line ${line} is not a line of the spend log`),
    ],
  ];
  for (const [what, lines, expected] of CASES)
    it(`are named, and the request counts once: ${what}`, async () => {
      const at = createScene({ recovers: false });
      at.write(A, ...lines);
      const { copied, faults } = await at.pass();
      assert.equal(copied, 1);
      const told = faults.map(({ detail }) => /line \d.*/.exec(detail)?.[0]);
      assert.deepEqual(told, expected);
      const [record] = linesOf(usageFile(at.dir, "2026-01-31"));
      const opened = lines.includes(open) ? `${JSON.stringify(open)}\n` : "";
      assert.equal(record?.["log"]?.sha256, sha256(`${opened}${JSON.stringify(settle)}\n`));
      assert.equal(record?.["cost"], settle["cost"]);
      at.write(A, second);
      const again = await at.other({ recovers: false }).pass();
      assert.equal(again.copied, 0, "another process knows it too");
      assert.match(again.faults.at(-1)!.detail, /settles/);
      await at.passUntil(NEXT_NOON);
      assert.equal(at.closed()[0]?.["segments"][0].lines, lines.length + 1);
    });

  it("are never copied if the record would be unreadable, whichever member is corrupt", async () => {
    const numbers = [-1, 1.5, 2 ** 53];
    const texts = ["", "x", "007", "2026-02-30T00:00:00.000Z"];
    const spoilt = [undefined, null, ...numbers, ...texts, {}, []];
    const lines = Object.keys(settleLine(1)).flatMap((name) =>
      spoilt.map((value) => settleLine(1, { [name]: value })),
    );
    const at = createScene({ recovers: false });
    at.write(
      A,
      ...lines.map((line, n) =>
        line["spend_id"] === spendId(1) ? { ...line, spend_id: spendId(n) } : line,
      ),
    );
    const { copied, faults } = await at.pass();
    assert.ok(copied > 20 && faults.length > 50, `${copied} copied`);
    await at.passUntil(NEXT_NOON);
    assert.deepEqual(closedDays(at), [["2026-01-31", copied]]);
    assert.equal((await at.records()).length, copied);
  });
});
