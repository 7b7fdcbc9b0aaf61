// What in the folder of the spend log is a segment, and what a dead process has left in its segment:
// it is settled as interrupted.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { settleInterrupted, socketOf } from "../../../../src/extensions/money/ledger/index.ts";
import { segmentsIn } from "../../../../src/extensions/money/ledger/segment-names.ts";
import { acquireSocketLock } from "../../../../src/extensions/scale/data-files/index.ts";
import type { OpenLine } from "../../../../src/extensions/money/records/index.ts";
import { linesOf, NO_USAGE, openLine, settleLine, textOf } from "../../../support/books.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { folder } from "../../../support/folder.ts";
import { NOON } from "../../../support/spend-log.ts";

const open = (n: number, over: object = {}) => openLine(n, over) as OpenLine;
const options = { currency: "EUR", clock: createFakeClock(NOON + 5_000) };

/** A segment that nobody writes. */
function left(text: string): string {
  const dir = join(folder({ inMemory: true }), "spend");
  mkdirSync(dir);
  const path = join(dir, "2026-01-31.0001.jsonl");
  writeFileSync(path, text);
  return path;
}

describe("settleInterrupted", () => {
  it("settles requests as interrupted: nothing used, nothing owed, the rest as it was", async () => {
    const before = textOf([open(1), open(2, { account: "Zürich" }), settleLine(1)]);
    const path = left(before);
    const end = Buffer.byteLength(before);
    const began = performance.now();
    const opens = [open(2, { account: "Zürich" })];
    assert.equal(await settleInterrupted(path, end, opens, options), true);
    const waited = performance.now() - began;
    assert.ok(waited > 45, `${waited} ms: a process without its socket looks within 10 ms`);
    assert.ok(readFileSync(path, "utf8").startsWith(before));
    const nothing = { model_served: null, provider: null, http_status: null, finish_reason: null };
    const interrupted = settleLine(2, {
      ...{ account: "Zürich", time: "2026-01-31T12:00:05.000Z", status: "interrupted" },
      ...{ ...nothing, first_token_ms: null, attempts: [], usage: NO_USAGE, usage_source: "none" },
      ...{ cost: "0", currency: "EUR", duration_ms: 5_000 },
    });
    assert.deepEqual(linesOf(path).slice(3), [interrupted]);
    assert.ok(!existsSync(socketOf(path)), "no socket is left");
  });

  it("changes nothing if a whole line has come meanwhile", async () => {
    const path = left(textOf([open(1)]));
    const end = Buffer.byteLength(textOf([open(1)]));
    appendFileSync(path, textOf([settleLine(1)]));
    const before = readFileSync(path, "utf8");
    assert.equal(await settleInterrupted(path, end, [open(1)], options), false);
    assert.equal(readFileSync(path, "utf8"), before);
    assert.ok(!existsSync(socketOf(path)));
  });

  it("leaves the segment of a process that answers alone", async (t) => {
    const before = textOf([open(1)]);
    const path = left(before);
    t.after((await acquireSocketLock(socketOf(path)))!);
    assert.equal(await settleInterrupted(path, before.length, [open(1)], options), false);
    assert.equal(readFileSync(path, "utf8"), before);
  });
});

it("finds segments, oldest first", () => {
  const dir = folder();
  const segments = ["2026-01-31.0001.jsonl", "2026-01-31.0002.jsonl", "2026-02-01.0001.jsonl"];
  const others = ["2026-01-31.0001.sock", "a.json", "2026-01-31.1.jsonl", `${segments[0]}.new`];
  for (const name of [...segments.toReversed(), ...others]) writeFileSync(join(dir, name), "");
  assert.deepEqual(segmentsIn(dir), segments);
});

it("names what is no file, but has the name of a segment", () => {
  for (const [index, make] of [
    (path: string) => mkdirSync(path),
    (path: string) => symlinkSync("/dev/null", path),
    (path: string) => execFileSync("mkfifo", [path]),
  ].entries()) {
    const dir = folder();
    make(join(dir, "2026-01-31.0001.jsonl"));
    const refused =
      /2026-01-31\.0001\.jsonl is not a file but has a segment's name: stop the gateway/;
    assert.throws(() => segmentsIn(dir), refused, `${index}`);
  }
});
