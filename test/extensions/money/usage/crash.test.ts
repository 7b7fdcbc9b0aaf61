// A pass that dies at any of its changes leaves everything in such a state that the next process
// ends up with the same result.

import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { BooksFault, syncUsage } from "../../../../src/extensions/money/usage/index.ts";
import { openLine } from "../../../support/books.ts";
import { dyingAt } from "../../../support/dying.ts";
import { folder } from "../../../support/folder.ts";
import {
  createScene,
  DAY_MS,
  numbersOf,
  request,
  snapshot,
  type Scene,
} from "../../../support/written-books.ts";

const A = "2026-01-29.0001.jsonl";
const B = "2026-01-30.0001.jsonl";
const C = "2026-01-30.0002.jsonl";
const at12 = (day: string): string => `${day}T12:00:00.000Z`;

/** The relevant state of a data_dir. */
function stateOf(dir: string): Record<string, string> {
  const files = Object.entries(snapshot(dir)).filter(([name]) => !name.endsWith(".new"));
  return Object.fromEntries(files);
}

/** Books in which a pass must do everything: recover, copy, close days, and delete. */
async function busyBooks(): Promise<Scene> {
  const at = createScene({ now: at12("2026-01-29"), keepDays: 1, recovers: false });
  at.write(A, ...request(1, at12("2026-01-29")));
  await at.pass();
  await at.passUntil(at12("2026-01-30"));
  at.write(B, ...request(2, at12("2026-01-30")), openLine(3, { time: at12("2026-01-30") }));
  await at.pass();
  at.write(C, ...request(4, at12("2026-01-30")), ...request(5, at12("2026-01-30")));
  await at.pass();
  at.write(B, ...request(6, at12("2026-01-30")), ...request(7, "2026-01-31T01:00:00.000Z"));
  // The process of both requests died while it wrote a line.
  at.write(C, ...request(8, "2026-01-30T23:00:00.000Z", "2026-01-31T00:00:01.000Z"));
  at.write(B, openLine(9, { time: "2026-01-31T02:00:00.000Z" }));
  writeFileSync(at.segment(B), `${readFileSync(at.segment(B), "utf8")}{"type":"set`);
  at.clock.advance(DAY_MS - 1);
  return at;
}

function copyOf(at: Scene): Scene {
  const dir = folder({ inMemory: true });
  cpSync(at.dir, dir, { recursive: true });
  const now = new Date(at.clock.now()).toISOString();
  return createScene({ dir, now, keepDays: 1 });
}

describe("a pass that dies", () => {
  it("at any change, or in the middle of one, leaves exactly the rest to the next", async () => {
    const before = await busyBooks();
    const whole = copyOf(before);
    await whole.pass();
    // Settle lines of dead processes get their time from the clock, so all copies need the same
    // clock.
    const expected = stateOf(whole.dir);
    assert.deepEqual(
      whole.closed().map(({ day, records }) => [day, records]),
      [
        ["2026-01-29", 1],
        ["2026-01-30", 4],
      ],
    );
    assert.deepEqual([existsSync(whole.segment(A)), existsSync(whole.segment(B))], [false, true]);
    let deaths = 0;
    for (; ; deaths += 1) {
      const at = copyOf(before);
      const lived = await dyingAt(deaths, () => syncUsage(at.books));
      if (lived) break;
      const next = at.other();
      await next.pass();
      assert.deepEqual(stateOf(at.dir), expected, `death at change ${deaths}`);
      const records = await next.records();
      const numbers = numbersOf(records).sort((a, b) => a - b);
      assert.deepEqual(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
    assert.ok(deaths > 25, `${deaths} changes`);
  });

  it("between closing a day and writing its line lets late records of the day be added", async () => {
    const at = createScene({ now: at12("2026-01-30"), recovers: false });
    at.write(C, ...request(1, at12("2026-01-30")));
    await at.pass();
    await at.books.store.finish("2026-01-30");
    at.write(B, ...request(2, at12("2026-01-30")));
    const next = at.other();
    await next.passUntil(at12("2026-01-31"));
    assert.deepEqual(numbersOf(await next.records()), [2, 1]);
    assert.equal(next.closed()[0]?.["records"], 2);
    assert.equal((await next.books.store.find({ requestId: "request 2", limit: 9 })).length, 1);
    assert.equal((await next.books.store.sums({}, ["account"]))[0]?.requests, 2);
  });
});

describe("files that were changed, shortened or deleted", () => {
  const OPEN_DAY = "usage/2026-01-31.jsonl";
  const CLOSED_DAY = "usage/2026-01-30.jsonl";
  const CURSOR = "usage/cursor.json";
  const without = (bytes: number) => (text: string) => text.slice(0, -bytes);
  /** `change`: returns the new text. Absent: the file is removed. */
  const cases: readonly [what: string, file: string, change?: (text: string) => string][] = [
    ["a segment is gone", `spend/${B}`],
    ["a segment is shorter than what was copied", `spend/${B}`, without(5)],
    ["the file of an open day is gone", OPEN_DAY],
    ["the file of an open day is shorter", OPEN_DAY, without(5)],
    ["the file of a closed day is gone", CLOSED_DAY],
    ["the file of a closed day is shorter", CLOSED_DAY, without(5)],
    ["the file of a closed day is longer", CLOSED_DAY, (text) => `${text}{}\n`],
    ["days.jsonl is gone", "days.jsonl"],
    ["days.jsonl is shorter", "days.jsonl", without(5)],
    ["days.jsonl cannot be read", "days.jsonl", () => "{}\n"],
    ["the cursor is gone", CURSOR],
    ["the cursor is empty", CURSOR, () => ""],
    ["the cursor is torn", CURSOR, without(5)],
    ["the cursor has no counts", CURSOR, () => '{"segments":{"x":{}},"days":{}}'],
  ];
  for (const [what, file, change] of cases)
    it(`are an error that names the file: ${what}`, async () => {
      const at = createScene({ now: at12("2026-01-30"), recovers: false });
      at.write(B, ...request(1, at12("2026-01-30")));
      await at.pass();
      await at.passUntil(at12("2026-01-31"));
      at.write(B, ...request(2, at12("2026-01-31")));
      await at.pass();
      const path = join(at.dir, file);
      if (change) writeFileSync(path, change(readFileSync(path, "utf8")));
      else rmSync(path);
      at.write(C, ...request(3, at12("2026-01-31")));
      const before = snapshot(at.dir);
      for (const books of [at.books, at.other().books])
        await assert.rejects(syncUsage(books), (error: Error) => {
          assert.ok(error instanceof BooksFault, String(error));
          assert.ok(error.message.startsWith(path), error.message);
          assert.match(error.message, /stop the gateway, .*'books rebuild' and start again$/);
          return true;
        });
      assert.deepEqual(snapshot(at.dir), before, "nothing is overwritten");
    });

  it("are read with an error that names the file, even without a pass in between", async () => {
    const at = createScene({ now: at12("2026-01-31"), recovers: false });
    at.write(B, ...request(1, at12("2026-01-31")));
    await at.pass();
    truncateSync(join(at.dir, OPEN_DAY), 17);
    const { store } = at.books;
    await assert.rejects(at.records(), /2026-01-31\.jsonl has \d+ bytes, although \d+ bytes/);
    await assert.rejects(store.sums({}, ["day"]), /2026-01-31\.jsonl has \d+ bytes/);
    await assert.rejects(store.find({ requestId: "x", limit: 1 }), /2026-01-31\.jsonl has/);
  });
});
