// How far a long command on the books is: it reads about as many bytes as it was said to read, and
// a terminal shows that on one line, which is gone in the end.

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { describe, it } from "node:test";
import { auditCommand } from "../../../src/extensions/audit/audit-command.ts";
import { statementCommand } from "../../../src/extensions/billing/billing-commands.ts";
import { usageSyncCommand } from "../../../src/extensions/books/usage-sync-command.ts";
import { rebuildCommand } from "../../../src/extensions/rebuild/rebuild-command.ts";
import { createProgressLine, progressText } from "../../../src/command-line/progress.ts";
import { folder } from "../../support/folder.ts";
import { runHere } from "../../support/run-here.ts";
import { writeSpend } from "../../support/spend.ts";
import { progressOf, type ShownWork } from "../../support/with-progress.ts";

/** Books with requests of two months, of which nothing is copied. */
function books() {
  const dir = folder();
  const from = Date.parse("2026-09-20T00:00:00Z");
  const to = Date.parse("2026-10-10T00:00:00Z");
  writeSpend(dir, { requests: 2_000, from, to, perSegment: 400 });
  const file = join(dir, "gateway.json");
  const spend = { keep_days: 36_500 };
  writeFileSync(file, JSON.stringify({ data_dir: dir, providers: {}, models: {}, spend }));
  return { dir, values: { config: file } };
}

/** A piece of work that was said to read what it has read, but for a hundredth. */
function assertFitting(work: ShownWork | undefined, label: string): void {
  assert.ok(work, label);
  assert.deepEqual([work.label, work.isEnded], [label, true]);
  assert.ok(work.done > 0.99 * work.total && work.done <= work.total, JSON.stringify(work));
}

describe("the progress of a command on the books", () => {
  it("is that of copying, and then that of the command itself", async () => {
    const { values } = books();
    const [copying, audit, ...others] = await progressOf(auditCommand, values);
    assertFitting(copying, "copying what was settled");
    assertFitting(audit, "audit");
    assert.deepEqual(others, []);
    const [again] = await progressOf(auditCommand, values);
    assert.deepEqual([again?.total, again?.done], [0, 0], "nothing is left to copy");
  });

  it("of usage sync ends with the spend log", async () => {
    const { values } = books();
    const [copying] = await progressOf(usageSyncCommand, { ...values, once: "true" });
    assertFitting(copying, "copying what was settled");
  });

  it("of books rebuild counts every time that something is read", async () => {
    const { dir, values } = books();
    const [fresh] = await progressOf(rebuildCommand, values);
    assert.deepEqual([fresh?.label, fresh?.isEnded], ["rebuild", true]);
    const [again] = await progressOf(rebuildCommand, values);
    assertFitting(again, "rebuild");
    rmSync(join(dir, "usage"), { recursive: true });
  });

  for (const format of ["table", "csv"]) {
    it(`of a statement as ${format} ends with the month`, async () => {
      const { values } = books();
      const asked = { ...values, account: "acme", month: "2026-10", format };
      const [, statement] = await progressOf(statementCommand, asked);
      assertFitting(statement, "statement");
    });
  }

  it("shows nothing where there is no terminal", async () => {
    const { values } = books();
    const end = await runHere(["audit", "--config", values.config], { isTerminal: false });
    assert.deepEqual([end.code, end.stderr], [0, ""]);
  });
});

/** A terminal, and a clock that is set by hand. */
function bench() {
  let now = 0;
  const written: string[] = [];
  const stderr = new Writable({
    decodeStrings: false,
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      done();
    },
  });
  const line = createProgressLine(Object.assign(stderr, { isTTY: true }), () => now);
  assert.ok(line);
  return {
    line,
    written,
    pass(ms: number) {
      now += ms;
    },
  };
}

describe("the line of a progress", () => {
  const CLEAR = "\r\u001b[K";

  it("comes after half a second, changes five times a second at most, and goes in the end", () => {
    const { line, written, pass } = bench();
    const work = line.begin("audit", 4_000_000_000);
    work.add(400_000_000);
    assert.deepEqual(written, []);
    pass(500);
    work.add(600_000_000);
    work.add(1);
    assert.deepEqual(written, [`${CLEAR}audit: 25 % of 4.0 GB, 2 s left`]);
    pass(1_500);
    work.add(999_999_999);
    assert.equal(written.at(-1), `${CLEAR}audit: 50 % of 4.0 GB, 2 s left`);
    work.end();
    assert.equal(written.at(-1), CLEAR);
    assert.equal(written.length, 3);
  });

  it("is cleared before other output, once", () => {
    const { line, written, pass } = bench();
    const work = line.begin("audit", 1_000);
    line.clear();
    pass(1_000);
    work.add(1);
    line.clear();
    line.clear();
    work.end();
    assert.equal(written.filter((text) => text === CLEAR).length, 1);
  });

  it("is not there where standard error is no terminal", () => {
    assert.equal(createProgressLine(new Writable()), undefined);
  });

  for (const [state, text] of [
    [{ done: 0, total: 10_000, elapsedMs: 9 }, "0 % of 10 kB"],
    [{ done: 5_000, total: 10_000, elapsedMs: 600_000 }, "50 % of 10 kB, 10 min left"],
    [{ done: 10_000_000, total: 10_000_000, elapsedMs: 9 }, "100 % of 10 MB, 0 s left"],
    [{ done: 20_000_000, total: 10_000_000, elapsedMs: 9 }, "20 MB read"],
    [{ done: 2_500_000_000, total: 0, elapsedMs: 9 }, "2.5 GB read"],
  ] as const) {
    it(`says ${JSON.stringify(text)} of ${JSON.stringify(state)}`, () =>
      assert.equal(progressText(state), text));
  }
});
