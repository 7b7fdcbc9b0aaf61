// Segments that are there under two names.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createCoverage, type ClosedDay } from "../../../../src/extensions/money/days/index.ts";
import { copyFaults } from "../../../../src/extensions/money/usage/index.ts";
import { startEffort } from "../../../support/effort.ts";

const COUNT = 2_000;

/** By name: each begins with a request of its own. */
const cursorOf = (count: number, beginning: string) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `${beginning}.${at}.jsonl`,
      { first: `sp_${at}`, bytes: 1, lines: 1, unsettled: 0 },
    ]),
  );

describe("copies of segments", () => {
  it("are found among those of years with little work", () => {
    const cursor = cursorOf(COUNT, "2026-01-31");
    const segments = Object.entries(cursor).map(([segment, known]) => ({ segment, ...known }));
    const coverage = createCoverage([
      { day: "2026-01-31", number: 1, segments },
    ] as never as ClosedDay[]);
    const effort = startEffort();
    const copyFault = copyFaults(coverage, cursor);
    const faults = Object.entries(cursor).map(([name, { first }]) => copyFault(name, first));
    assert.deepEqual(
      faults.filter((fault) => fault !== undefined),
      [],
    );
    assert.match(String(copyFault("copy", "sp_7")), /^begins with sp_7 like 2026-01-31.7.jsonl: /);
    assert.equal(copyFault("copy", ""), undefined);
    assert.ok(effort() < 20, "more work than to parse 20 MB of JSON");
  });
});
