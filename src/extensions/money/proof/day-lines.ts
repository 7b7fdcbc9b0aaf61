// Reads days.jsonl, and checks that each of its lines continues the one before.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import { parseClosedDay, type DaysLine } from "../days/index.ts";
import { dayAfter } from "../records/index.ts";
import type { Findings } from "./findings.ts";

/** A line of days.jsonl with its position. */
export interface DayLine extends DaysLine {
  /** The position of the line in the file. The first line has 1. */
  readonly line: number;
}

/** Returns the lines of days.jsonl that can be parsed, and reports what is wrong with any line. */
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
      findings.add(where, "is not a closed day's line");
      continue;
    }
    if (closed.number !== line) findings.add(where, `has the number ${closed.number}`);
    if (closed.previous !== previous)
      findings.add(where, `does not follow line ${line - 1}: one of them was changed or moved`);
    const dayBefore = lines.at(-1)?.closed.day;
    if (dayBefore !== undefined && closed.day !== dayAfter(dayBefore))
      findings.add(where, `is of ${closed.day}, and the line before of ${dayBefore}`);
    lines.push({ text, closed, line });
  }
  return lines;
}
