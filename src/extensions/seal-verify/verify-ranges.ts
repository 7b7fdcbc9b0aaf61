// The verification of the files of months, byte for byte, by the ranges that heads have of them.
import { existsSync, statSync } from "node:fs";
import { createMonthFiles } from "../books/index.ts";
import { rangesOf, readRange, type HeadLine } from "../seals/index.ts";
import type { Findings } from "./findings.ts";

/** Compares the files of months with what heads have of them. */
export async function verifyRanges(
  dir: string,
  heads: readonly HeadLine[],
  findings: Findings,
): Promise<void> {
  const files = createMonthFiles(dir);
  const cursor = files.readCursor();
  for (const month of cursor.months.keys()) {
    const path = files.pathOf(month, cursor);
    if (!existsSync(path)) continue;
    const { size } = statSync(path);
    let line = 1;
    for (const { from, to, sha256, day } of rangesOf(
      heads,
      month,
      cursor.rewritten.get(month) ?? 0,
    )) {
      const range = await readRange(path, from, Math.min(to, size));
      const last = line + range.lines - 1;
      if (range.sha256 !== sha256)
        findings.add(
          `usage/${month}.jsonl, lines ${line} to ${last}`,
          `are not byte for byte as the head of ${day} has them: changed, or in another order`,
        );
      line = last + 1;
    }
  }
}
