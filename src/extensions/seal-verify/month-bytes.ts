// What heads prove of the files of months byte for byte, and so of the order of the lines and of
// what receipts say beside the columns.
import { existsSync, statSync } from "node:fs";
import { rangesOf, readRange, type HeadLine } from "../seals/index.ts";
import type { Findings } from "./findings.ts";

/** What heads have of the file of a month. */
export interface MonthBytes {
  /** Bytes from the beginning of the file that heads have. 0: none. */
  readonly proved: number;
  /** The last head that has bytes of it which count no more. Absent: all of them count. */
  readonly writtenAnew?: WrittenAnew;
}

/** A file that was written anew since a head was made, as usage/cursor.json says. */
export interface WrittenAnew {
  /** The day of the head. */
  readonly since: string;
  /** How many bytes that head and those before it have. */
  readonly bytes: number;
}

/** What heads have of a month whose file was written anew so many times. */
export function bytesInHeads(
  heads: readonly HeadLine[],
  month: string,
  rewritten: number,
): MonthBytes {
  const last = heads
    .flatMap(({ head }) => head.months.map((range) => ({ ...range, since: head.day })))
    .findLast((range) => range.month === month);
  if (!last) return { proved: 0 };
  if (last.rewritten === rewritten) return { proved: last.to };
  return { proved: 0, writtenAnew: { since: last.since, bytes: last.to } };
}

/**
 * Names months of which heads have bytes that usage/cursor.json does not count. A head is made of
 * bytes that count already, and these only grow, unless the file is written anew.
 */
export function verifyCounted(
  files: readonly MonthFile[],
  heads: readonly HeadLine[],
  findings: Findings,
): void {
  const months = new Set(heads.flatMap(({ head }) => head.months.map(({ month }) => month)));
  for (const month of months) {
    const file = files.find((each) => each.month === month);
    const counted = file?.counted ?? 0;
    const { proved, writtenAnew } = bytesInHeads(heads, month, file?.rewritten ?? 0);
    const expected = file ? proved : Math.max(proved, writtenAnew?.bytes ?? 0);
    if (counted >= expected) continue;
    const what = file ? `counts ${counted} bytes of it` : "does not know it";
    findings.add(
      `usage/${month}.jsonl`,
      `usage/cursor.json ${what}, and heads have ${expected}: records were removed or moved`,
    );
  }
}

/** The file of a month, as far as usage/cursor.json counts it. */
export interface MonthFile {
  /** `YYYY-MM`. */
  readonly month: string;
  readonly path: string;
  /** How many bytes of it count. */
  readonly counted: number;
  /** How often it was written anew. */
  readonly rewritten: number;
}

/** Compares the file of a month with the bytes that heads have of it. */
export async function verifyBytes(
  { month, path, rewritten }: MonthFile,
  heads: readonly HeadLine[],
  findings: Findings,
): Promise<void> {
  if (bytesInHeads(heads, month, rewritten).proved === 0 || !existsSync(path)) return;
  const { size } = statSync(path);
  let line = 1;
  for (const { from, to, sha256, day } of rangesOf(heads, month, rewritten)) {
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
