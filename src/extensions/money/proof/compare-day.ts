// Compares the records of one day with the settled requests that are booked on it. Both come in the
// order of the log, so pairs meet at once. Only what has no match is held, until its segment ends.
import { join } from "node:path";
import type { Coverage } from "../days/index.ts";
import { usageRecord, type LogPlace, type UsageRecord } from "../records/index.ts";
import { createSegmentReader } from "../usage/index.ts";
import type { Findings } from "./findings.ts";
import type { ProvedSegment } from "./prove-segment.ts";
import type { RecordLine, RecordSource } from "./record-source.ts";

/** What the comparisons of all days share. */
export interface Comparison {
  /** The folder of the spend log. */
  readonly spendDir: string;
  /** The segments that are there, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** What the lines of closed days say of segments. */
  readonly coverage: Coverage;
  /** The records. */
  readonly source: RecordSource;
  /** Receives each difference. */
  readonly findings: Findings;
}

/** A settled request, as the records should have it. */
export interface Expected {
  /** The record that is made of its lines. */
  readonly record: UsageRecord;
  /** Where its settle line stands. */
  readonly log: LogPlace;
  /** The number of its open line. 0: there is none. */
  readonly opened: number;
  /** Whether the records should have it by now. */
  readonly isDue: boolean;
}

/** A request and its record, or one of them alone. */
export interface Pair {
  /** Undefined: the line has no request. */
  readonly request?: Expected;
  /** Undefined: the request has no record. */
  readonly line?: RecordLine;
  /** Where the record of a request should stand that has none: the number of the line. */
  readonly nextLine?: number;
  /** Whether the record is as many lines off in the log as the one before. */
  readonly isOffAsBefore?: boolean;
}

/** The most records of a batch. */
const BATCH = 500;

/**
 * Yields the records that a day should have, in the order of the log: those of its requests, and
 * those whose lines are gone. Tells of each pair as soon as it is known.
 */
export async function* compareDay(
  day: string,
  lines: AsyncGenerator<RecordLine, undefined>,
  comparison: Comparison,
  tell: (pair: Pair) => void,
): AsyncGenerator<readonly UsageRecord[]> {
  const missing = new Map<string, Pair & { readonly request: Expected }>();
  const surplus = new Map<string, RecordLine>();
  let current = "";
  let nextLine = 1;
  /** How many lines after the line in its record the last request stands in its segment. */
  let shift = 0;

  function meet(request: Expected, line: RecordLine): void {
    const before = shift;
    shift = request.log.line - line.record!.log!.line;
    tell({ request, line, isOffAsBefore: shift === before });
    missing.delete(request.record.usage_id);
    surplus.delete(request.record.usage_id);
  }

  /** What did not meet in the segments before this one never will. */
  function enter(segment: string): void {
    if (segment <= current) return;
    current = segment;
    shift = 0;
    for (const pair of missing.values()) tell(pair);
    for (const line of surplus.values()) tell({ line });
    missing.clear();
    surplus.clear();
  }

  function takeRequest(request: Expected): void {
    enter(request.log.segment);
    const line = surplus.get(request.record.usage_id);
    if (line) meet(request, line);
    else missing.set(request.record.usage_id, { request, nextLine });
  }

  /** Returns whether the record is all that there is of its request. */
  function takeLine(line: RecordLine): boolean {
    const { usage_id: id = "", log } = line.record ?? {};
    nextLine = line.line + 1;
    if (log) enter(log.segment);
    const pair = missing.get(id);
    const last = log ? comparison.segments.get(log.segment)?.end.lines : undefined;
    const isGone = log !== undefined && log.line > (last ?? 0);
    if (pair) meet(pair.request, line);
    else if (!log || isGone || surplus.has(id)) tell({ line });
    else surplus.set(id, line);
    return isGone && !pair;
  }

  const requests = requestsOn(day, comparison);
  let request = (await requests.next()).value;
  let line = (await lines.next()).value;
  let records: UsageRecord[] = [];
  while (request || line) {
    if (request && (!line || comesFirst(request, line))) {
      takeRequest(request);
      records.push(request.record);
      request = (await requests.next()).value;
    } else if (line) {
      if (takeLine(line)) records.push(line.record!);
      line = (await lines.next()).value;
    }
    if (records.length < BATCH) continue;
    yield records;
    records = [];
  }
  yield records;
  enter("~"); // Comes after all names of segments.
}

/** The requests that the segments have on a day, in the order of the log. */
async function* requestsOn(
  day: string,
  { spendDir, segments, coverage }: Comparison,
): AsyncGenerator<Expected, undefined> {
  for (const { name, days, dueLines } of segments.values()) {
    const reader = createSegmentReader(join(spendDir, name), name);
    for await (const { settled } of reader.read(days.get(day) ?? 0))
      for (const { settle, log, opened } of settled)
        if (coverage.bookedDay(name, log.line, settle.time) === day)
          yield { record: usageRecord(settle, day, log), log, opened, isDue: log.line <= dueLines };
  }
  return undefined;
}

/** Whether a request comes before a line of the records, or belongs to it. */
const comesFirst = ({ log }: Expected, line: RecordLine): boolean =>
  line.record?.log !== undefined && compareLogs(log, line.record.log) <= 0;

/** By segment, then by line: below 0 if `one` comes first. */
export function compareLogs(one: LogPlace, other: LogPlace): number {
  if (one.segment === other.segment) return one.line - other.line;
  return one.segment < other.segment ? -1 : 1;
}
