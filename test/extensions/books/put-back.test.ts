// Putting back a segment: what is done depends on what stands at its path.

import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { carryOver, putBack } from "../../../src/extensions/books/spend-log/put-back.ts";
import { openLine, settleLine, spendId, textOf } from "../../support/books.ts";
import { folder } from "../../support/folder.ts";

const LINES = [openLine(1), settleLine(1), openLine(2), settleLine(2)];
const OURS = textOf(LINES);

/** A segment that its process has open and that was deleted; then `present` was put at its path. */
function lost(t: TestContext, present?: string) {
  const path = join(folder(), "2026-01-31.0001.jsonl");
  writeFileSync(path, OURS);
  const source = openSync(path, "r");
  rmSync(path);
  if (present !== undefined) writeFileSync(path, present);
  const fds = [source];
  t.after(() => {
    for (const fd of fds) closeSync(fd);
  });
  const done = putBack(path, source);
  if (done) fds.push(done.fd);
  return { path, source, fds, done, text: () => readFileSync(path, "utf8") };
}

describe("putBack", () => {
  it("writes the segment anew if nothing is there", (t) => {
    const { done, text } = lost(t);
    assert.deepEqual([done?.bytes, done?.lines], [Buffer.byteLength(OURS), 4]);
    assert.equal(text(), OURS);
  });

  for (const [what, present, lines] of [
    ["an older copy", textOf(LINES.slice(0, 2)), 2],
    ["a copy torn in the middle of a line", OURS.slice(0, 300), 4],
    ["an empty file", "", 4],
    ["a whole copy", OURS, 0],
  ] as const) {
    it(`fills up ${what}`, (t) => {
      const { done, text } = lost(t, present);
      assert.equal(text(), OURS);
      assert.ok(Math.abs((done?.lines ?? 0) - lines) <= 1);
    });
  }

  it("goes on with a copy that has more", (t) => {
    const more = OURS + textOf([openLine(3)]);
    const { done, text } = lost(t, more);
    assert.deepEqual([done?.lines, text()], [0, more]);
  });

  it("replaces a damaged copy by the whole", (t) => {
    const damaged = textOf([LINES[0]!, "damaged", LINES[2]!]);
    const { done, text } = lost(t, damaged);
    assert.match(done?.outcome ?? "", /a damaged copy of it was replaced/);
    assert.equal(text(), OURS);
  });

  it("adds its lines after those of a recovery in a copy", (t) => {
    const recovered = textOf([LINES[0]!, settleLine(1, { status: "interrupted", cost: "0" })]);
    const { text } = lost(t, recovered);
    assert.equal(text(), recovered + textOf(LINES.slice(1)));
  });

  it("leaves another segment as it is", (t) => {
    const other = textOf([openLine(7), settleLine(7)]);
    const { done, text } = lost(t, other);
    assert.deepEqual([done, text()], [undefined, other]);
  });
});

it("carryOver writes all lines to another name, unless that is taken", (t) => {
  const { path, source, fds } = lost(t, textOf([openLine(7)]));
  const next = path.replace("0001", "0002");
  const done = carryOver(next, source);
  assert.ok(done);
  fds.push(done.fd);
  assert.equal(readFileSync(next, "utf8"), OURS);
  assert.ok(OURS.includes(spendId(2)));
  assert.equal(carryOver(next, source), undefined);
});
