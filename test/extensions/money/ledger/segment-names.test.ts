// What in the folder of the spend log is a segment, and what the next one is named.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { segmentsIn } from "../../../../src/extensions/money/ledger/segment-names.ts";
import { folder } from "../../../support/folder.ts";

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
    const refused = /2026-01-31\.0001\.jsonl is no file but has a segment's name: stop the gateway/;
    assert.throws(() => segmentsIn(dir), refused, `${index}`);
  }
});
