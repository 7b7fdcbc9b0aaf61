// What a request and its record, or one of them alone, show: counts it, and names what is wrong.
import {
  createSummer,
  parseUsageLine,
  type LogPlace,
  type Summer,
  type UsageRecord,
} from "../records/index.ts";
import type { Settled } from "../usage/index.ts";
import type { ProofContext, ProvedSegment } from "./prove-segment.ts";
import type { RecordLine, RecordSource } from "./record-source.ts";

/** What the comparisons of all days share. */
export interface Comparison extends ProofContext {
  /** The segments that are there, by name, in their order. */
  readonly segments: ReadonlyMap<string, ProvedSegment>;
  /** The records. */
  readonly source: RecordSource;
}

/** A number of records, and when the first and the last of them ended. */
export interface RecordSpan {
  /** How many there are. */
  records: number;
  /** ISO 8601 in UTC. Null: there is none. */
  from: string | null;
  /** ISO 8601 in UTC. Null: there is none. */
  to: string | null;
}

/** How the records of a day compare with the spend log. */
export interface DayTally {
  /** Settled requests that are not in the records. */
  added: number;
  /** Records that say something else than the log. */
  changed: number;
  /** Records that no settled request has. */
  removed: number;
  /** Settled requests that were not copied when the proof began. */
  awaited: number;
  /** Records that are as the log has them. */
  readonly unchanged: RecordSpan;
  /** Records whose lines are gone with their segments. */
  readonly left: RecordSpan;
  /** Adds up the requests that the records have or should have by now. */
  readonly settled: Summer<"currency">;
  /** Adds up the records whose lines should be in the spend log. */
  readonly recorded: Summer<"currency">;
}

const createTally = (): DayTally => ({
  added: 0,
  changed: 0,
  removed: 0,
  awaited: 0,
  unchanged: { records: 0, from: null, to: null },
  left: { records: 0, from: null, to: null },
  settled: createSummer(["currency"]),
  recorded: createSummer(["currency"]),
});

function addToSpan(span: RecordSpan, { ended_at: time }: UsageRecord): void {
  span.records += 1;
  if (span.from === null || time < span.from) span.from = time;
  if (span.to === null || time > span.to) span.to = time;
}

/** A line of the records that is held until its segment was read. */
export type HeldLine = Pick<RecordLine, "line" | "text">;

/** Judges the requests and the records of a day, in the order of the log. */
export interface Judge {
  /** What was found so far. */
  readonly tally: DayTally;
  /** A request whose record is not there. */
  missing(settled: Settled, record: UsageRecord): void;
  /**
   * A request and its record. `shift`: how many lines after that in its record the request before
   * stands in the segment. Returns the same of this one.
   */
  pair(settled: Settled, record: UsageRecord, line: HeldLine, shift: number): number;
  /** A line that no request has. Returns its record if that stays: only its lines may be gone. */
  alone(line: HeldLine): UsageRecord | undefined;
}

export function createJudge(
  day: string,
  isClosed: boolean,
  { segments, coverage, source, findings }: Comparison,
): Judge {
  const name = source.nameOf(day);
  const tally = createTally();
  /** The line of the records where the next one should stand. */
  let place = 1;

  const placeOf = ({ line }: HeldLine): string => `${name}, line ${line}`;

  /** The next line of the log stands in this line. In an open day they are in any order. */
  function checkOrder(line: HeldLine): void {
    if (isClosed && line.line !== place)
      findings.add(
        placeOf(line),
        `is not in the order of the log: it or line ${line.line - 1} was moved or inserted`,
      );
    place = line.line + 1;
  }

  return {
    tally,
    missing(settled, record) {
      const isDue = settled.log.line <= segments.get(settled.log.segment)!.dueLines;
      tally[isDue ? "added" : "awaited"] += 1;
      if (!isDue) return;
      tally.settled.addRecord(record);
      const what = `${record.usage_id}: settled, and not in ${name}, line ${place}`;
      findings.add(placeInLog(settled), what);
    },
    pair(settled, record, line, shift) {
      checkOrder(line);
      tally.settled.addRecord(record);
      if (line.text === JSON.stringify(record)) {
        tally.recorded.addRecord(record);
        addToSpan(tally.unchanged, record);
        return 0;
      }
      const recorded = parseUsageLine(line.text)!;
      tally.recorded.addRecord(recorded);
      tally.changed += 1;
      const { line: inRecord } = recorded.log!;
      const own = settled.log.line - inRecord;
      // One line that is inserted or removed moves all that follow: the first of them is named.
      const moved = { ...record, log: { ...settled.log, line: inRecord } };
      if (own === shift && line.text === JSON.stringify(moved)) return own;
      const what = `${record.usage_id}: in the usage records ${describeChange(recorded, record)}`;
      findings.add(`${placeOf(line)}, and ${placeInLog(settled)}`, what);
      return own;
    },
    alone(line) {
      const where = placeOf(line);
      const record = parseUsageLine(line.text);
      if (!record?.log) {
        tally.removed += 1;
        findings.add(where, "is no usage record");
        return undefined;
      }
      const { usage_id: id, log } = record;
      const known = segments.get(log.segment);
      if (log.line <= (known?.end.lines ?? 0)) {
        tally.removed += 1;
        tally.recorded.addRecord(record);
        const what = "in the usage records, without lines of its own in the spend log";
        findings.add(where, `${id}: ${what} (it names spend/${log.segment}, line ${log.line})`);
        return undefined;
      }
      checkOrder(line);
      addToSpan(tally.left, record);
      const isListed = (coverage.of(log.segment).at(-1)?.lines ?? 0) >= log.line;
      if (isClosed && !known && isListed) return record;
      findings.add(where, `${id}: its lines are gone: ${whyGone(log, known)}`);
      return record;
    },
  };
}

/** Where the lines of a request stand, for the operator. */
function placeInLog({ log, opened }: Settled): string {
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return `spend/${log.segment}, line ${log.line} (${open})`;
}

/** Why the lines of a record are gone. `known`: its segment, if that is there. */
const whyGone = ({ segment, line }: LogPlace, known: ProvedSegment | undefined): string =>
  known
    ? `spend/${segment} ends after line ${known.end.lines}, before line ${line}`
    : `there is no spend/${segment}, and no line of days.jsonl has its line ${line}`;

/** The members in which two records differ, with the recorded and the settled value. */
function describeChange(recorded: UsageRecord, settled: UsageRecord): string {
  const was = recorded as unknown as Readonly<Record<string, unknown>>;
  const is = settled as unknown as Readonly<Record<string, unknown>>;
  const texts = Object.keys({ ...was, ...is }).flatMap((name) => {
    const [one, other] = [was, is].map((side) => JSON.stringify(side[name]) ?? "not there");
    return one === other ? [] : [`${name} is ${one}, settled as ${other}`];
  });
  return texts.join(", ") || "the line is not what a gateway writes";
}
