// Verifies usage records against heads and sealed segments, in the files of months or in a
// database.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { createMonthFiles, readLines } from "../books/index.ts";
import type { Mark, UsageStore } from "../usage-records/index.ts";
import { type HeadLine, recordLine } from "../seals/index.ts";
import type { SealedDetails } from "./closed-details.ts";
import type { ExpectedRecords, RecordProof } from "./day-leaves.ts";
import type { Findings } from "./findings.ts";
import { bytesInHeads, type MonthBytes, type MonthFile } from "./month-bytes.ts";
import type { OlderRecords } from "./older-records.ts";
import { readRecordLine } from "./record-line.ts";

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
  /**
   * The head that has bytes of the file although it was written anew since: these bytes cannot be
   * compared any more. Absent: the file is the one that the heads have.
   */
  readonly written_anew?: { readonly since: string; readonly bytes: number };
  /**
   * Records proved by heads of which nothing proves what receipts say beside the columns
   * (`details`): the file was written anew, and their segments are gone. Absent: there are none.
   */
  readonly details_not_proved?: number;
}

/** A usage record as text, and where it stands. */
export interface RecordLine {
  readonly text: string;
  /** Where it ends in its file, in bytes. 0: it is in no file. */
  readonly end: number;
  /** Where it stands, for a finding: "line 7". */
  readonly where: string;
}

/** Some usage records after the other. */
type RecordBatches = AsyncIterable<readonly RecordLine[]>;

/** The usage records of a month. */
export interface MonthRecords {
  /** `YYYY-MM`. */
  readonly month: string;
  /** As MonthProof.file. */
  readonly file: string;
  /** As MonthProof.uncounted_bytes. */
  readonly uncounted: number;
  /** What heads have of its file. */
  readonly bytes: MonthBytes;
  records(): RecordBatches;
}

/** The usage records that there were at one moment. */
export interface RecordSource {
  /** How far each segment was copied. */
  readonly marks: readonly Mark[];
  readonly months: readonly MonthRecords[];
  /** The files of these months. Absent: they are in a database. */
  readonly files?: readonly MonthFile[];
}

/**
 * The files of months in a data_dir, as far as they count now. Undefined: there are none, so the
 * usage records are in a database, or nothing was copied yet.
 */
export function monthsInFiles(
  dataDir: string,
  heads: readonly HeadLine[],
  findings: Findings,
): RecordSource | undefined {
  const files = createMonthFiles(join(dataDir, "usage"));
  if (!files.hasCursor() && files.monthsThere().length === 0) return undefined;
  for (const { detail } of files.faults()) findings.add("usage", detail);
  const cursor = files.readCursor();
  const monthFiles: MonthFile[] = [];
  const months = [...cursor.months].sort().flatMap(([month, size]): MonthRecords[] => {
    const path = files.pathOf(month, cursor);
    const rewritten = cursor.rewritten.get(month) ?? 0;
    monthFiles.push({ month, path, counted: size, rewritten });
    if (!existsSync(path) || size === 0) return [];
    const file = `usage/${month}.jsonl`;
    const actual = statSync(path).size;
    const isCut = (line: number): void =>
      findings.add(`${file}, line ${line}`, "is cut short, or its line end was changed");
    const records = (): RecordBatches => linesIn(path, Math.min(size, actual), isCut);
    const bytes = bytesInHeads(heads, month, rewritten);
    return [{ month, file, uncounted: Math.max(0, actual - size), bytes, records }];
  });
  return { marks: cursor.marks, months, files: monthFiles };
}

async function* linesIn(path: string, to: number, isCut: (line: number) => void): RecordBatches {
  let number = 0;
  let read = 0;
  for await (const batch of readLines(path, { to })) {
    let end = read;
    read = batch.end;
    yield batch.lines.map((text) => {
      number += 1;
      end += Buffer.byteLength(text) + 1;
      return { text, end, where: `line ${number}` };
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
    const bytes = { proved: 0 };
    months.push({ month, file, uncounted: 0, bytes, records: () => rowsOf(store, only) });
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
    yield records.map((record) => ({ text: recordLine(record), end: 0, where: record.usage_id }));
}

/** What is wrong with a record. */
const WRONG: { readonly [proof in RecordProof]?: string } = {
  wrong: "is not as it was sealed: it was changed or inserted",
  again: "is there a second time",
};

/** What is known of the records that there should be. */
export interface Evidence {
  readonly expected: ExpectedRecords;
  readonly details: SealedDetails;
  readonly older: OlderRecords;
  /** Whether a record is on its way into the usage records. */
  readonly isAwaited: (usageId: string) => boolean;
}

/** Judges all records, and names those that are missing. Resolves with a row for each month. */
export async function verifyRecords(
  source: RecordSource,
  evidence: Evidence,
  findings: Findings,
): Promise<readonly MonthProof[]> {
  const proofs: MonthProof[] = [];
  for (const month of source.months) proofs.push(await verifyMonth(month, evidence, findings));
  const missing = new Map<string, string>();
  const { expected, isAwaited } = evidence;
  expected.missing(isAwaited, (usageId, by) => missing.set(usageId, by));
  await nameMissing(source, missing, findings);
  return proofs;
}

async function verifyMonth(
  month: MonthRecords,
  evidence: Evidence,
  findings: Findings,
): Promise<MonthProof> {
  const { file, uncounted, bytes, records } = month;
  const counts: Record<RecordProof, number> = { head: 0, log: 0, nothing: 0, wrong: 0, again: 0 };
  let withoutDetails = 0;
  for await (const lines of records()) {
    for (const line of lines) {
      const { proof, day, what, lacksDetails } = judgeLine(line, month, evidence);
      counts[proof] += 1;
      if (lacksDetails) withoutDetails += 1;
      const where = `${file}, ${line.where}`;
      if (what !== undefined) findings.add(where, `${idIn(line.text)} ${what}`);
      if (proof === "nothing") evidence.older.take({ ...line, where, day }, bytes);
    }
  }
  return {
    file,
    records: Object.values(counts).reduce((sum, count) => sum + count, 0),
    by_head: counts.head,
    by_log: counts.log,
    not_proved: counts.nothing + counts.wrong + counts.again,
    uncounted_bytes: uncounted,
    ...(bytes.writtenAnew && { written_anew: bytes.writtenAnew }),
    ...(withoutDetails > 0 && { details_not_proved: withoutDetails }),
  };
}

/** What is said of a line. */
interface JudgedLine {
  readonly proof: RecordProof;
  /** The day on which the record ended. "": the line is none. */
  readonly day: string;
  /** What is wrong with it. Undefined: nothing. */
  readonly what: string | undefined;
  /** Whether a head proves the columns, and nothing the details. */
  readonly lacksDetails?: boolean;
}

function judgeLine(
  { text, end }: RecordLine,
  { month, bytes }: MonthRecords,
  { expected, details }: Evidence,
): JudgedLine {
  const { day, hasDetails, fault } = readRecordLine(text);
  const wrong = (what: string | undefined): JudgedLine => ({ proof: "wrong", day, what });
  if (day === "") return wrong(fault);
  const proof = expected.judge(text, day);
  if (fault !== undefined) return wrong(fault);
  if (!day.startsWith(`${month}-`))
    return wrong(`ended on ${day}: it was moved to the file of another month`);
  const isExact = !hasDetails || end <= bytes.proved;
  if (proof !== "head" || isExact) return { proof, day, what: WRONG[proof] };
  const detailsProof = details.judge(text);
  if (detailsProof === "wrong") return wrong(OTHER_DETAILS);
  return { proof, day, what: undefined, lacksDetails: detailsProof === "nothing" };
}

const OTHER_DETAILS = "does not say in its details what the spend log says: they were changed";

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

/** The usage_id in a line. */
const idIn = (line: string): string => /"usage_id":"([^"]*)"/.exec(line)?.[1] ?? "the line";
