// The lines of days.jsonl as they are, and whether each continues the one before.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import { parseClosedDay, type DaysLine } from "../days/index.ts";
import { dayAfter } from "../records/index.ts";
import type { Findings } from "./findings.ts";

/** The line of a day, and where it stands in days.jsonl. */
export interface DayLine extends DaysLine {
  /** The first line has 1. */
  readonly line: number;
}

/** Reads the lines of a data_dir that can be read, and reports what is wrong with any of them. */
export function readDayLines(dataDir: string, findings: Findings): readonly DayLine[] {
  const path = join(dataDir, "days.jsonl");
  const texts = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [""];
  if (texts.pop() !== "")
    findings.add(`days.jsonl, line ${texts.length + 1}`, "is cut short: its day counts as open");
  const lines: DayLine[] = [];
  let hash: string | null = null;
  for (const [index, text] of texts.entries()) {
    const previous = hash;
    hash = sha256(text);
    const line = index + 1;
    const where = `days.jsonl, line ${line}`;
    const closed = parseClosedDay(text);
    if (!closed || JSON.stringify(closed) !== text) {
      findings.add(where, "is no line of a closed day");
      continue;
    }
    if (closed.number !== line) findings.add(where, `has the number ${closed.number}`);
    if (closed.previous !== previous)
      findings.add(where, `does not follow line ${line - 1}: one of them was changed or moved`);
    const before = lines.at(-1)?.closed.day;
    if (before !== undefined && closed.day !== dayAfter(before))
      findings.add(where, `is of ${closed.day}, and the line before of ${before}`);
    lines.push({ text, closed, line });
  }
  return lines;
}
