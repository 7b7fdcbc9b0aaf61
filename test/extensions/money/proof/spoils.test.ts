// Any change, removal, insertion, move or truncation in the books is found, and reported with file
// and line.

import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createFindings } from "../../../../src/extensions/money/proof/index.ts";
import type { Scene } from "../../../support/written-books.ts";
import * as sealed from "../../../support/sealed-books.ts";
import { todays } from "../../../support/long.ts";

type Change = (lines: string[], at: number) => string[];

/** The first of these members with another value of the same length. */
const VALUE = /"(?:model_requested|status|account|key_id|made_at)":"[^"]*(?=")/;
const otherValue = (line: string): string => line.replace(VALUE, (text) => `${text.slice(0, -1)}7`);
const isSettle = (line: string): boolean => line.startsWith('{"type":"settle"');
const otherId = (line: string): string => line.replaceAll(/sp_0{8}/g, "sp_ffffffff");

const SPOILS: Readonly<Record<string, Change>> = {
  change: (lines, at) => lines.map((line, index) => (index === at ? otherValue(line) : line)),
  remove: (lines, at) => lines.filter((_, index) => index !== at),
  insert: (lines, at) => lines.toSpliced(at, 0, otherId(lines[at]!)),
  double: (lines, at) => lines.toSpliced(at, 0, lines[at]!),
  swap: (lines, at) => lines.toSpliced(at - 1, 2, lines[at]!, lines[at - 1]!),
  cut: (lines, at) => lines.slice(0, at),
};

/** The line numbers in a file that the findings name. */
function namedIn(found: readonly string[], file: string): number[] {
  const single = new RegExp(`${file}, line (\\d+)(?: \\(opened in line (\\d+)\\))?`, "g");
  const numbers = found.flatMap((text) => [...text.matchAll(single)]);
  return numbers.flatMap(([, ...groups]) => groups.map(Number));
}

/** Whether a finding names a range of lines in the file that includes the line. */
const isInRange = (found: readonly string[], file: string, line: number): boolean =>
  found.some((text) => {
    const [, from, to] = new RegExp(`${file}, lines (\\d+) to (\\d+):`).exec(text) ?? [];
    return Number(from) <= line && line <= Number(to) + 1;
  });

interface Spoiled {
  readonly dir: string;
  readonly file: string;
  /** Whether to corrupt a line. Absent: every line. */
  readonly only?: (line: string) => boolean;
  /**
   * Whether a range that includes the line is enough, by the line and the one before. Absent: no.
   */
  readonly range?: (line: string, before: string) => boolean;
}

/**
 * Corrupts today's lines of a file in turn. The line, an adjacent one, or a range must be named.
 */
async function assertFound(change: Change, { dir, file, only, range }: Spoiled): Promise<void> {
  const count = sealed.textOfFile(dir, file).split("\n").length - 1;
  for (const at of todays([...Array(count).keys()], count > 2 ? 3 : 1)) {
    const [before = "", line = ""] = ["", ...sealed.textOfFile(dir, file).split("\n")].slice(at);
    if (only && !only(line)) continue;
    if (change === SPOILS["swap"] && at === 0) continue;
    const copy = sealed.copyOf(dir);
    sealed.edit(copy, file, (lines) => change(lines, at));
    const found = await sealed.findingsIn(copy);
    const isNear = namedIn(found, file).some((line) => Math.abs(line - at - 1) <= 1);
    const isNamed = isNear || (range?.(line, before) && isInRange(found, file, at + 1));
    assert.ok(isNamed, `line ${at + 1} of ${file}: ${JSON.stringify(found, null, 1)}`);
  }
}

let scene: Scene;
/** The same folder after keep_days has deleted the segments of its closed days. */
let retired: string;
before(async () => {
  scene = await sealed.threeDays();
  retired = sealed.copyOf(scene.dir);
  sealed.retire(retired, [sealed.A, sealed.B, sealed.C]);
});

it("unchanged books have no finding, with their segments and after those expired", async () => {
  assert.deepEqual(await sealed.findingsIn(scene.dir), []);
  assert.deepEqual(await sealed.findingsIn(retired), []);
});

describe("a line of a closed day", { concurrency: 2 }, () => {
  for (const [name, change] of Object.entries(SPOILS)) {
    for (const segment of [sealed.A, sealed.B, sealed.C])
      it(`that is corrupted in ${segment} is found: ${name}`, async () => {
        const file = `spend/${segment}`;
        // A missing open line is reported by its settle line, because nothing says where it was.
        // Only the hash records the order of open lines.
        const range = (line: string, before: string) =>
          /swap|remove/.test(name) && !isSettle(line) && !(name === "swap" && isSettle(before));
        await assertFound(change, { dir: scene.dir, file, range });
      });
    for (const file of ["usage/2026-01-31.jsonl", "usage/2026-02-01.jsonl"]) {
      it(`that is corrupted in ${file} is found: ${name}`, () =>
        assertFound(change, { dir: scene.dir, file }));
      it(`that is corrupted in ${file} without segments is found: ${name}`, () =>
        assertFound(change, { dir: retired, file, range: () => true }));
    }
    it(`that is corrupted in days.jsonl is found: ${name}`, () =>
      assertFound(change, { dir: scene.dir, file: "days.jsonl" }));
  }
});

describe("a line of an open day", { concurrency: 2 }, () => {
  for (const name of ["change", "remove", "insert", "double", "cut"])
    for (const segment of [sealed.D, sealed.E])
      it(`that settles a request is found if it is corrupted in ${segment}: ${name}`, () =>
        assertFound(SPOILS[name]!, { dir: scene.dir, file: `spend/${segment}`, only: isSettle }));
});

it("a cursor that the system does not let read is one finding among the others", async () => {
  const dir = sealed.copyOf(scene.dir);
  rmSync(join(dir, "usage/cursor.json"));
  mkdirSync(join(dir, "usage/cursor.json"));
  sealed.edit(dir, "usage/2026-01-31.jsonl", ([first = "", ...rest]) => [
    otherValue(first),
    ...rest,
  ]);
  const [cursor, ...others] = await sealed.findingsIn(dir);
  assert.match(String(cursor), /^usage\/cursor.json: EISDIR/);
  assert.ok(namedIn(others, "usage/2026-01-31.jsonl").includes(1));
});

it("a missing segment is found even if the cursor was changed too, by older segments or its day's age", async () => {
  const gone = (name: string) => `spend/${name}: is not there: line 2 of days.jsonl has it`;
  const copy = sealed.copyOf(scene.dir);
  sealed.retire(copy, [sealed.C]);
  assert.deepEqual(await sealed.findingsIn(copy), [gone(sealed.C)]);
  const isExpired = (day: string) => day < "2026-02-01";
  assert.deepEqual(await sealed.findingsIn(retired, { isExpired }), [sealed.B, sealed.C].map(gone));
});

it("the first 10,000 findings are listed once each, and the others are counted", () => {
  const findings = createFindings();
  for (let line = 0; line < 10_002; line += 1)
    for (let times = 0; times < 2; times += 1) findings.add(`line ${line % 10_001}`, "differs");
  const listed = findings.list();
  assert.deepEqual([listed.length, new Set(listed).size], [10_001, 10_001]);
  assert.deepEqual(listed.slice(-2), ["line 9999: differs", "and 2 more"]);
});

describe("data after the end", () => {
  for (const file of ["usage/2026-01-31.jsonl", "days.jsonl"])
    it(`of ${file} is found, also without a line end`, async () => {
      const count = sealed.textOfFile(scene.dir, file).split("\n").length;
      for (const text of ["x", "x\n"]) {
        const copy = sealed.copyOf(scene.dir);
        appendFileSync(join(copy, file), text);
        assert.ok(namedIn(await sealed.findingsIn(copy), file).includes(count));
      }
    });

  it("of a segment waits to be copied, or does not count", async () => {
    const copy = sealed.copyOf(scene.dir);
    appendFileSync(join(copy, "spend", sealed.E), '{"type":"open"');
    assert.deepEqual(await sealed.findingsIn(copy), []);
    truncateSync(join(copy, "usage/2026-01-31.jsonl"), 5_000);
    assert.ok(isInRange(await sealed.findingsIn(copy), "usage/2026-01-31.jsonl", 7));
  });
});
