// Verifies usage records against heads and sealed segments, in the files of months or in a
// database.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { createMonthFiles, readLines } from "../books/index.ts";
import type { Mark, UsageStore } from "../usage-records/index.ts";
import { recordLine } from "../seals/index.ts";
import type { ExpectedRecords, RecordProof } from "./day-leaves.ts";
import type { Findings } from "./findings.ts";

/** What is proved of the usage records of a month. */
export interface MonthProof {
  /** The path of the file in data_dir, or the month in a table. */
  readonly file: string;
  readonly records: number;
  /** Records that the head of their day proves. */
  readonly by_head: number;
  /** Records whose day has no head yet, and that a sealed segment has as they are. */
  readonly by_log: number;
  /** Records that nothing proves: they are older than the seals, or were not sealed. */
  readonly not_proved: number;
  /** Bytes behind those that usage/cursor.json counts: a usage sync died, or is at work. */
  readonly uncounted_bytes: number;
}

/** A usage record as text, and where it stands. */
export interface RecordLine {
  readonly text: string;
  /** Where it stands, for a finding: "line 7". */
  readonly where: string;
}

/** Some usage records after the other. */
type RecordBatches = AsyncIterable<readonly RecordLine[]>;

/** The usage records of a month. */
export interface MonthRecords {
  /** As MonthProof.file. */
  readonly file: string;
  /** As MonthProof.uncounted_bytes. */
  readonly uncounted: number;
  records(): RecordBatches;
}

/** The usage records that there were at one moment. */
export interface RecordSource {
  /** How far each segment was copied. */
  readonly marks: readonly Mark[];
  readonly months: readonly MonthRecords[];
}

/**
 * The files of months in a data_dir, as far as they count now. Undefined: there are none, so the
 * usage records are in a database, or nothing was copied yet.
 */
export function monthsInFiles(dataDir: string, findings: Findings): RecordSource | undefined {
  const files = createMonthFiles(join(dataDir, "usage"));
  if (!files.hasCursor() && files.monthsThere().length === 0) return undefined;
  for (const { detail } of files.faults()) findings.add("usage", detail);
  const cursor = files.readCursor();
  const months = [...cursor.months].sort().flatMap(([month, size]) => {
    const path = files.pathOf(month, cursor);
    if (!existsSync(path) || size === 0) return [];
    const file = `usage/${month}.jsonl`;
    const actual = statSync(path).size;
    const isCut = (line: number): void =>
      findings.add(`${file}, line ${line}`, "is cut short, or its line end was changed");
    const records = (): RecordBatches => linesIn(path, Math.min(size, actual), isCut);
    return [{ file, uncounted: Math.max(0, actual - size), records }];
  });
  return { marks: cursor.marks, months };
}

async function* linesIn(path: string, to: number, isCut: (line: number) => void): RecordBatches {
  let number = 0;
  let read = 0;
  for await (const { lines, end } of readLines(path, { to })) {
    read = end;
    yield lines.map((text) => {
      number += 1;
      return { text, where: `line ${number}` };
    });
  }
  if (read < to) isCut(number + 1);
}

/** The months of a store outside of data_dir, from the month of `firstDay` to that of `lastDay`. */
export async function monthsInStore(
  store: UsageStore,
  firstDay: string,
  lastDay: string,
): Promise<RecordSource> {
  const marks = await store.marks();
  const months: MonthRecords[] = [];
  for (let month = firstDay.slice(0, 7); month <= lastDay.slice(0, 7); month = monthAfter(month)) {
    const only = month;
    const file = `usage_records of ${month}`;
    months.push({ file, uncounted: 0, records: () => rowsOf(store, only) });
  }
  return { marks, months };
}

function monthAfter(month: string): string {
  const time = new Date(`${month}-01`);
  time.setUTCMonth(time.getUTCMonth() + 1);
  return time.toISOString().slice(0, 7);
}

async function* rowsOf(store: UsageStore, month: string): RecordBatches {
  for await (const records of store.records({ month, ownOnly: true }))
    yield records.map((record) => ({ text: recordLine(record), where: record.usage_id }));
}

/** What is wrong with a record. */
const WRONG: { readonly [proof in RecordProof]?: string } = {
  wrong: "is not as it was sealed: it was changed or inserted",
  again: "is there a second time",
};

/** Judges all records, and names those that are missing. Resolves with a row for each month. */
export async function verifyRecords(
  source: RecordSource,
  expected: ExpectedRecords,
  isAwaited: (usageId: string) => boolean,
  findings: Findings,
): Promise<readonly MonthProof[]> {
  const proofs: MonthProof[] = [];
  for (const { file, uncounted, records } of source.months) {
    const counts: Record<RecordProof, number> = { head: 0, log: 0, nothing: 0, wrong: 0, again: 0 };
    let total = 0;
    for await (const lines of records()) {
      for (const { text, where } of lines) {
        const proof = expected.judge(text, dayIn(text));
        counts[proof] += 1;
        total += 1;
        const what = WRONG[proof];
        if (what !== undefined) findings.add(`${file}, ${where}`, `${idIn(text)} ${what}`);
      }
    }
    proofs.push({
      file,
      records: total,
      by_head: counts.head,
      by_log: counts.log,
      not_proved: counts.nothing + counts.wrong + counts.again,
      uncounted_bytes: uncounted,
    });
  }
  const missing = new Map<string, string>();
  expected.missing(isAwaited, (usageId, by) => missing.set(usageId, by));
  await nameMissing(source, missing, findings);
  return proofs;
}

/** Names records that are missing, by the lines that have their ids if there are some. */
async function nameMissing(
  { months }: RecordSource,
  missing: ReadonlyMap<string, string>,
  findings: Findings,
): Promise<void> {
  const there = new Set<string>();
  for (const { file, records } of missing.size > 0 ? months : []) {
    for await (const lines of records()) {
      for (const { text, where } of lines) {
        const by = missing.get(idIn(text));
        if (by === undefined) continue;
        there.add(idIn(text));
        findings.add(`${file}, ${where}`, `${idIn(text)} is not as ${by} has it`);
      }
    }
  }
  for (const [usageId, by] of missing)
    if (!there.has(usageId)) findings.add("usage records", `${usageId} is missing: ${by} has it`);
}

const ENDED_AT = '"ended_at":"';
const DAY_LENGTH = "YYYY-MM-DD".length;

/** The day on which the record of a line ended. */
function dayIn(line: string): string {
  const at = line.lastIndexOf(ENDED_AT) + ENDED_AT.length;
  return line.slice(at, at + DAY_LENGTH);
}

/** The usage_id in a line. */
const idIn = (line: string): string => /"usage_id":"([^"]*)"/.exec(line)?.[1] ?? "a record";
