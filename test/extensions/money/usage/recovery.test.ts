// Segments of dead processes, clocks that jump, old segments, and segments with two names.

import assert from "node:assert/strict";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createCoverage, type ClosedDay } from "../../../../src/extensions/money/days/index.ts";
import { createFindings, proveBooks } from "../../../../src/extensions/money/proof/index.ts";
import { BooksFault, copyFaults } from "../../../../src/extensions/money/usage/index.ts";
import { linesOf, openLine, settleLine, spendId } from "../../../support/books.ts";
import { startEffort } from "../../../support/effort.ts";
import {
  createScene,
  DAY_MS,
  numbersOf,
  request,
  type Scene,
} from "../../../support/written-books.ts";

const A = "2026-01-31.0001.jsonl";
const B = "2026-01-31.0002.jsonl";
const NOON = "2026-01-31T12:00:00.000Z";
const open = (n: number) => openLine(n, { time: NOON });
const settle = (n: number) => settleLine(n, { time: NOON, duration_ms: 0 });

it("a file with the name of a copied segment is rejected, however long it is", async () => {
  const at = createScene();
  at.write(A, open(1), settle(1));
  await at.pass();
  rmSync(at.segment(A));
  at.write(A, open(2), settle(2), open(3), settle(3));
  const message = new RegExp(`begins with ${spendId(2)}, not ${spendId(1)}: stop the gateway`);
  await assert.rejects(at.other().pass(), { constructor: BooksFault, message });
});

for (const removed of [A, B])
  it(`two new segments that begin alike are neither copied nor settled; without ${removed} the other is billed once`, async () => {
    const at = createScene();
    at.write(A, open(1), settle(1), open(2));
    at.write(B, open(1), settle(1), open(2), settle(2));
    const texts = () => [A, B].map((name) => readFileSync(at.segment(name), "utf8"));
    const before = texts();
    const message = new RegExp(
      `begins with ${spendId(1)} like .*: one is a copy of the other: stop`,
    );
    await assert.rejects(at.pass(), { constructor: BooksFault, message });
    assert.deepEqual(texts(), before);
    assert.deepEqual(await at.records(), []);
    rmSync(at.segment(removed));
    assert.deepEqual(await at.pass(), { copied: 2, faults: [] });
  });

it("a file under the name of a segment that was gone is refused", async () => {
  const at = createScene();
  at.write(A, ...request(1, NOON));
  await at.pass();
  const gone = { first: "", bytes: 0, lines: 0, unsettled: 0 };
  await at.books.store.setCursor({ [A]: gone });
  await assert.rejects(at.other().pass(), /has the name of a segment that was gone/);
});

it("copies are found among the segments of years with little traffic", () => {
  const cursor = Object.fromEntries(
    Array.from({ length: 2_000 }, (_, at) => [
      `2026-01-31.${at}.jsonl`,
      { first: `sp_${at}`, bytes: 1, lines: 1, unsettled: 0 },
    ]),
  );
  const segments = Object.entries(cursor).map(([segment, known]) => ({ segment, ...known }));
  const coverage = createCoverage([
    { day: "2026-01-31", number: 1, segments },
  ] as never as ClosedDay[]);
  const effort = startEffort();
  const begun = { copy: { first: "sp_7" }, another: { first: "sp_x" }, empty: { first: "" } };
  assert.deepEqual(copyFaults(coverage, cursor), []);
  const fault = "begins with sp_7 like 2026-01-31.7.jsonl: one is a copy of the other";
  assert.deepEqual(copyFaults(coverage, begun, cursor), [{ name: "copy", fault }]);
  assert.ok(effort() < 20, "more work than to parse 20 MB of JSON");
});

describe("segments of dead processes", () => {
  it("lose a torn last line, and nothing else", async () => {
    const at = createScene();
    at.write(A, open(1), settle(1), open(2));
    const whole = readFileSync(at.segment(A), "utf8");
    for (const torn of ["{", JSON.stringify(settle(2)), '{"type":"open","spend_id":"é']) {
      appendFileSync(at.segment(A), torn);
      await at.pass();
      const text = readFileSync(at.segment(A), "utf8");
      assert.ok(text.startsWith(whole) && text.endsWith("\n"), torn);
      assert.equal(linesOf(at.segment(A)).length, 4);
    }
    const statuses = (await at.records()).map(({ status }) => status);
    assert.deepEqual(statuses, ["completed", "interrupted"]);
  });

  it("are deleted if they are empty, and stay unchanged for a command", async () => {
    const at = createScene();
    at.write(A);
    at.write(B, open(1));
    const command = at.other({ recovers: false });
    assert.deepEqual(await command.pass(), { copied: 0, faults: [] });
    assert.equal(linesOf(at.segment(B)).length, 1);
    assert.ok(existsSync(at.segment(A)));
    await at.pass();
    assert.ok(!existsSync(at.segment(A)));
    assert.equal(linesOf(at.segment(B)).length, 2);
  });

  it("are forgotten once they are copied to their end, also by a long-running command", async () => {
    const at = createScene({ recovers: false });
    at.write(A, open(1), settle(1));
    at.write(B, open(2));
    for (const remembered of [[A, B], [B]]) {
      await at.pass();
      assert.deepEqual([...at.books.openSegments.keys()], remembered);
    }
  });
});

describe("a clock that jumps", () => {
  async function oneDay(): Promise<Scene> {
    const at = createScene({ recovers: false, keepDays: 1 });
    at.write(A, ...request(1, NOON));
    await at.pass();
    // The time is noted when a day may be closed.
    await at.passUntil("2026-02-01T12:00:00.000Z");
    assert.equal(at.closed().length, 1);
    return at;
  }

  it("closes no day and deletes nothing until it has been steady for a day", async () => {
    const at = await oneDay();
    at.clock.advance(400 * DAY_MS);
    await at.pass();
    assert.equal(at.closed().length, 1);
    at.clock.advance(DAY_MS / 2);
    await at.other().pass();
    assert.equal(at.closed().length, 1, "another process knows of the clock jump");
    assert.ok(existsSync(at.segment(A)));
    at.clock.advance(DAY_MS / 2);
    await at.pass();
    assert.equal(at.closed().length, 402);
  });

  for (const [what, spoil] of [
    ["is lost although days are closed", (note: string) => rmSync(note)],
    ["cannot be read", (note: string) => writeFileSync(note, '{"seen":')],
  ] as const)
    it(`is assumed if its note ${what}: days close again a day later`, async () => {
      const at = await oneDay();
      spoil(join(at.dir, "clock.json"));
      for (const closed of [1, 3]) {
        at.clock.advance(DAY_MS);
        await at.pass();
        assert.equal(at.closed().length, closed);
      }
    });

  it("is handled after a jump back as well, and requests are booked on the day that was open", async () => {
    const at = await oneDay();
    const back = at.other({ now: "2026-01-20T00:00:00.000Z" });
    back.write(A, ...request(2, "2026-01-20T00:00:00.000Z"));
    await back.pass();
    assert.equal(back.closed().length, 1);
    const [, record] = await back.records();
    assert.deepEqual([record?.day, record?.ended_at], ["2026-02-01", "2026-01-20T00:00:00.000Z"]);
  });
});

describe("old segments", () => {
  it("are deleted once the days of all their lines are old, and not before", async () => {
    const at = createScene({ keepDays: 3 });
    at.write(A, ...request(1, NOON));
    await at.pass();
    await at.passUntil("2026-02-01T12:00:00.000Z");
    at.write(A, ...request(2, "2026-02-01T12:00:00.000Z"));
    await at.pass();
    // January 31 expires on February 4, but the last line of the segment is on February 1.
    await at.passUntil("2026-02-05T00:00:00.000Z");
    assert.ok(existsSync(at.segment(A)));
    const text = readFileSync(at.segment(A));
    await at.passUntil("2026-02-05T12:00:00.000Z");
    assert.deepEqual(readdirSync(join(at.dir, "spend")), []);
    assert.deepEqual(await at.books.store.cursor(), {});
    // As if the process had died before it deleted the files.
    for (const file of [A, A.replace("jsonl", "sock")]) writeFileSync(at.segment(file), text);
    assert.deepEqual(await at.pass(), { copied: 0, faults: [] });
    assert.deepEqual(readdirSync(join(at.dir, "spend")), []);
    assert.deepEqual(numbersOf(await at.records()), [1, 2]);
    const [found] = await at.books.store.find({ requestId: "request 2", limit: 1 });
    assert.equal(found?.log?.segment, A);
  });

  it("stay long enough after their own day if older days close together with it", async () => {
    const at = createScene({ keepDays: 3, now: "2026-02-05T12:00:00.000Z" });
    const young = "2026-02-04.0001.jsonl";
    at.write(A, ...request(1, NOON));
    at.write(young, ...request(2, "2026-02-04T12:00:00.000Z"));
    await at.pass();
    await at.pass();
    assert.deepEqual([at.closed().length, existsSync(at.segment(A))], [5, false]);
    assert.ok(existsSync(at.segment(young)));
    const findings = createFindings();
    await proveBooks({ dataDir: at.dir, records: "files" }, findings);
    assert.deepEqual(findings.list(), []);
  });

  it("stay if somebody appends a line that no day has yet", async () => {
    const at = createScene({ keepDays: 1, recovers: false });
    at.write(A, ...request(1, NOON));
    await at.pass();
    await at.passUntil("2026-02-02T00:00:00.000Z");
    at.write(A, openLine(2, { time: "2026-02-02T00:00:00.000Z" }));
    await at.passUntil("2026-02-10T00:00:00.000Z");
    assert.ok(existsSync(at.segment(A)), "a request in it is not settled");
  });

  it("that lost their end are listed by no later day, and are deleted as well", async () => {
    const at = createScene({ keepDays: 3, recovers: false });
    at.write(A, ...request(1, NOON));
    const { size } = statSync(at.segment(A));
    at.write(A, ...request(2, NOON));
    await at.pass();
    await at.passUntil("2026-02-01T12:00:00.000Z");
    truncateSync(at.segment(A), size);
    const { [A]: known } = await at.books.store.cursor();
    // As `books rebuild` marks it.
    await at.books.store.setCursor({ [A]: { ...known!, bytes: size, lines: 2, isCut: true } });
    const later = at.other();
    await later.passUntil("2026-02-03T12:00:00.000Z");
    const listed = at.closed().map(({ segments }) => segments.length);
    assert.deepEqual([listed, existsSync(at.segment(A))], [[1, 0, 0], true]);
    await later.passUntil("2026-02-04T12:00:00.000Z");
    assert.ok(!existsSync(at.segment(A)));
  });

  it("are an error if a cursor is restored that is older than a closed day", async () => {
    const at = createScene({ keepDays: 1 });
    at.write(A, ...request(1, NOON));
    await at.pass();
    const cursor = await at.books.store.cursor();
    at.write(A, ...request(2, NOON));
    await at.passUntil("2026-02-01T12:00:00.000Z");
    await at.books.store.setCursor(cursor);
    const later = at.other({ now: "2026-02-05T12:00:00.000Z" });
    await assert.rejects(later.pass(), /usage records of 2026-01-31 are lost/);
  });
});
