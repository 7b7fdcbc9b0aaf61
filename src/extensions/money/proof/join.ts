// Records against segments. Segments are read one after the other, and the files of all days that
// they have requests on beside them: each has its records in the order of the log. So both sides
// meet, and only what does not is held in memory, until the end of its segment.
import { usageRecord, type UsageRecord } from "../records/index.ts";
import type { Settled } from "../usage/index.ts";
import type { Coverage } from "./coverage.ts";
import { openDay, type DayCounts, type DayStream } from "./day-stream.ts";
import type { Findings } from "./findings.ts";
import type { RecordLine, RecordSource } from "./record-source.ts";

/** Gets what a proof has read, to add it up. */
export interface ProofTotals {
  /** A request that the records should have. */
  settled(record: UsageRecord): void;
  /** A record, and how it compares. "left": its line is gone with its segment. */
  recorded(record: UsageRecord, kind: "equal" | "unequal" | "left"): void;
  /** All records of a day were read. `isProved`: days.jsonl has exactly these. */
  dayDone(day: string, counts: DayCounts, isProved: boolean): void;
}

/** What a join works with. */
export interface JoinOptions {
  readonly source: RecordSource;
  readonly coverage: Coverage;
  readonly closed: ReadonlyMap<string, DayStream["closed"]>;
  /** The segments that are there. */
  readonly present: ReadonlySet<string>;
  readonly findings: Findings;
  readonly totals: ProofTotals;
}

export interface Join {
  /** Takes a settled request of the segment that is being read. `isDue`: the records should have it. */
  settled(request: Settled, isDue: boolean): Promise<void>;
  /** The segment with this name ends after so many lines. Resolves with how many were not due. */
  endSegment(segment: string, lines: number): Promise<number>;
  /** All segments were read: takes the rest of all days. */
  finish(): Promise<void>;
}

/** A settled request without a record so far. */
interface Expected {
  readonly record: UsageRecord;
  readonly opened: number;
  readonly isDue: boolean;
}

/** A record without a settled request so far. */
interface Found {
  readonly line: RecordLine;
  readonly stream: DayStream;
}

export function createJoin(options: JoinOptions): Join {
  const { source, coverage, closed, present, findings, totals } = options;
  const streams = new Map<string, DayStream>();
  /** Those of which not all records are taken. */
  const active = new Set<DayStream>();
  /** The days whose lines in days.jsonl have exactly their records. */
  const proved = new Set<string>();
  /** How many lines the segments have that were read. */
  const ends = new Map<string, number>();
  const expected = new Map<string, Expected>();
  const found = new Map<string, Found>();
  /** How many lines further down than in the records the last request stands in its segment. */
  let shift = 0;

  function streamOf(day: string): DayStream {
    const known = streams.get(day);
    if (known) return known;
    const stream = openDay(source, day, closed.get(day), findings);
    streams.set(day, stream);
    active.add(stream);
    return stream;
  }

  /** Takes the records of a day up to a line of a segment. */
  async function takeUpTo(stream: DayStream, segment: string, line: number): Promise<void> {
    for (let next = await stream.current(); next; next = await stream.current()) {
      const log = next.record?.log;
      if (log && (log.segment > segment || (log.segment === segment && log.line > line))) return;
      stream.take();
      takeRecord({ line: next, stream }, segment);
    }
  }

  function takeRecord(taken: Found, segment: string): void {
    const { line, stream } = taken;
    const { record } = line;
    if (!record?.log) {
      findings.add(stream.whereIs(line), "is no usage record");
      stream.counts.removed += 1;
      return;
    }
    const request = expected.get(record.usage_id);
    if (request && record.log.segment === segment) match(request, taken, record);
    else if (!present.has(record.log.segment)) leave(taken, record);
    else if (record.log.segment !== segment || found.has(record.usage_id)) refuse(taken, record);
    else found.set(record.usage_id, taken);
  }

  function match(request: Expected, { line, stream }: Found, record: UsageRecord): void {
    expected.delete(record.usage_id);
    const isEqual = line.text === JSON.stringify(request.record);
    totals.recorded(record, isEqual ? "equal" : "unequal");
    const shifted = request.record.log!.line - (record.log?.line ?? 0);
    const isKnownShift = shifted === shift && line.text === textAt(request, record);
    shift = shifted;
    if (isEqual) {
      stream.counts.unchanged += 1;
      return;
    }
    if (stream.day === request.record.day) {
      stream.counts.changed += 1;
    } else {
      stream.counts.removed += 1;
      streamOf(request.record.day).counts.added += 1;
    }
    // One line that is inserted or removed moves all that follow.
    if (isKnownShift) return;
    findings.add(
      `${stream.whereIs(line)}, and ${placeOf(request)}`,
      `${record.usage_id}: in the usage records ${describeChange(record, request.record)}`,
    );
  }

  /** A record whose segment is gone: it stays as it is. */
  function leave({ line, stream }: Found, record: UsageRecord): void {
    const { segment, line: number } = record.log!;
    const last = coverage.of(segment).at(-1);
    stream.counts.left += 1;
    totals.recorded(record, "left");
    if (!stream.closed || !last || last.lines < number)
      findings.add(
        stream.whereIs(line),
        `${record.usage_id}: its lines are gone: there is no spend/${segment}, and no line of ` +
          `days.jsonl has its line ${number}`,
      );
    else if (line.text !== JSON.stringify(record) || record.day !== stream.day)
      findings.add(stream.whereIs(line), "is not what a gateway writes: it was changed");
  }

  /** A record that its segment does not have: it says so, or the segment was cut before it. */
  function refuse({ line, stream }: Found, record: UsageRecord): void {
    const { segment, line: number } = record.log!;
    const lines = ends.get(segment) ?? 0;
    const isCut = number > lines;
    stream.counts[isCut ? "left" : "removed"] += 1;
    totals.recorded(record, isCut ? "left" : "unequal");
    const what = isCut
      ? `its lines are gone: spend/${segment} ends after line ${lines}, before line ${number}`
      : "in the usage records, without lines of its own in the spend log " +
        `(it names line ${number} of spend/${segment})`;
    findings.add(stream.whereIs(line), `${record.usage_id}: ${what}`);
  }

  async function finishIfDone(stream: DayStream): Promise<void> {
    if (await stream.current()) return;
    active.delete(stream);
    if (stream.finish()) proved.add(stream.day);
  }

  return {
    async settled({ settle, log, opened }, isDue) {
      const day = coverage.bookedDay(log.segment, log.line, settle.time);
      const record = usageRecord(settle, day, log);
      const request = { record, opened, isDue };
      if (isDue) totals.settled(record);
      const known = found.get(record.usage_id);
      found.delete(record.usage_id);
      if (known) match(request, known, known.line.record!);
      else expected.set(record.usage_id, request);
      await takeUpTo(streamOf(day), log.segment, log.line);
    },
    async endSegment(segment, lines) {
      ends.set(segment, lines);
      for (const stream of [...active]) await takeUpTo(stream, segment, Infinity);
      let awaited = 0;
      for (const [id, request] of expected) {
        if (!request.isDue) {
          awaited += 1;
          continue;
        }
        const { day } = request.record;
        streamOf(day).counts.added += 1;
        const where = placeOf(request);
        findings.add(where, `${id}: settled, and not in the ${source.nameOf(day)}`);
      }
      for (const taken of found.values()) refuse(taken, taken.line.record!);
      shift = 0;
      expected.clear();
      found.clear();
      for (const stream of [...active]) await finishIfDone(stream);
      return awaited;
    },
    async finish() {
      const days = new Set([...(await source.days()), ...streams.keys()]);
      for (const day of [...days].sort()) {
        const stream = streamOf(day);
        if (active.has(stream)) {
          await takeUpTo(stream, LAST, 0);
          await finishIfDone(stream);
        }
        totals.dayDone(day, stream.counts, proved.has(day));
      }
    },
  };
}

/** Comes after all names of segments. */
const LAST = "~";

/** The line of a request's record, if it stood where another record says. */
function textAt({ record }: Expected, { log }: UsageRecord): string {
  return JSON.stringify({ ...record, log: { ...record.log, line: log?.line } });
}

function placeOf({ record, opened }: Expected): string {
  const { segment, line } = record.log!;
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return `spend/${segment}, line ${line} (${open})`;
}

/** The members in which two records differ, with the recorded and the settled value. */
function describeChange(recorded: UsageRecord, settled: UsageRecord): string {
  const sides = [recorded, settled] as unknown as readonly Record<string, unknown>[];
  const names = [...new Set(sides.flatMap((side) => Object.keys(side)))];
  const texts = names.flatMap((name) => {
    const [one, other] = sides.map((side) => JSON.stringify(side[name]) ?? "not there");
    return one === other ? [] : [`${name} is ${one}, settled as ${other}`];
  });
  return texts.join(", ") || "the line is not what a gateway writes";
}
