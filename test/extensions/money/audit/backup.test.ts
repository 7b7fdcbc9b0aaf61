// The manual's commands that copy the data_dir of a running gateway.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { folder } from "../../../support/folder.ts";
import { createScene, request } from "../../../support/written-books.ts";
import { blocksOf } from "../../../support/readme.ts";
import { command } from "../../../support/sealed-books.ts";

const SEGMENTS = ["2026-01-31.0001.jsonl", "2026-02-01.0001.jsonl"] as const;
const [copying = ""] = blocksOf("bash", "backup");
const steps = copying.trim().split("\n");

/** A backup during which the day closes, before the step with this number. */
async function backUp(closing: number): Promise<string> {
  const dir = folder();
  mkdirSync(join(dir, "data"));
  const at = createScene({ dir: join(dir, "data"), recovers: false });
  const [first, second] = SEGMENTS;
  at.write(first, ...request(1, "2026-01-31T12:00:00.000Z"));
  await at.passUntil("2026-01-31T23:59:59.000Z");
  for (const [number, step] of [...steps, "true"].entries()) {
    if (number === closing) {
      at.write(first, ...request(2, "2026-01-31T23:59:59.000Z"));
      at.write(second, ...request(3, "2026-02-01T00:00:05.000Z"));
      await at.passUntil("2026-02-01T00:00:15.000Z");
      assert.equal(at.closed().length, 1);
    }
    execFileSync("bash", ["-c", step], { cwd: dir });
  }
  return join(dir, "backup");
}

for (const closing of [...steps, "the end"].keys())
  it(`a backup is complete even if a day closes before step ${closing}`, async () => {
    const backup = await backUp(closing);
    const rebuilt = await command(backup, ["books", "rebuild"]);
    assert.equal(rebuilt.code, 0, rebuilt.stderr);
    const audited = await command(backup, ["audit"]);
    assert.match(audited.stdout, /\nthe books are right\n$/);
  });
