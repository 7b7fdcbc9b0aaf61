// What is said of single records: they are as their lines in the spend log have them, or not, or
// these lines are gone.
import type { UsageRecord } from "../records/index.ts";
import type { Coverage } from "../days/index.ts";
import type { DayCounts, DayStream } from "./day-stream.ts";
import type { Findings } from "./findings.ts";
import type { RecordLine } from "./record-source.ts";

/** Gets what a proof has read, to add it up. */
export interface ProofTotals {
  /** A request that the records should have. */
  settled(record: UsageRecord): void;
  /**
   * A record, and how it compares. "left": its segment is gone, and a closed day has its line.
   * "lost": its line is gone.
   */
  recorded(record: UsageRecord, kind: "equal" | "unequal" | "left" | "lost"): void;
  /** All records of a day were read. `isProved`: days.jsonl has exactly these. */
  dayDone(day: string, counts: DayCounts, isProved: boolean): void;
}

/** A settled request, as the records should have it. */
export interface Expected {
  readonly record: UsageRecord;
  /** The number of its open line. 0: there is none. */
  readonly opened: number;
  /** Whether the records should have it by now. */
  readonly isDue: boolean;
  /** Where its record should be, if it is not there. */
  readonly missingAt?: string;
}

/** A line of the records that can be read. */
export interface Found {
  readonly line: RecordLine;
  readonly record: UsageRecord;
  readonly stream: DayStream;
}

/** What a judge works with. */
export interface JudgeOptions {
  readonly coverage: Coverage;
  readonly countsOf: (day: string) => DayCounts;
  readonly findings: Findings;
  readonly totals: ProofTotals;
}

export interface Judge {
  /** Compares a record with the request that has its id. */
  match(request: Expected, found: Found): void;
  /** A record whose segment is gone: it stays as it is. */
  leave(found: Found): void;
  /** A record that its segment does not have. */
  refuse(found: Found): void;
  /** A segment was read, and has so many lines. */
  segmentEnded(segment: string, lines: number): void;
}

export function createJudge({ coverage, countsOf, findings, totals }: JudgeOptions): Judge {
  /** How many lines the segments have that were read. */
  const ends = new Map<string, number>();
  /** How many lines further down than in the records the last request stands in its segment. */
  let shift = 0;

  return {
    match(request, { line, record, stream }) {
      const isEqual = line.text === JSON.stringify(request.record);
      totals.recorded(record, isEqual ? "equal" : "unequal");
      const before = shift;
      shift = request.record.log!.line - record.log!.line;
      if (isEqual) {
        stream.counts.unchanged += 1;
        return;
      }
      if (stream.day === request.record.day) {
        stream.counts.changed += 1;
      } else {
        stream.counts.removed += 1;
        countsOf(request.record.day).added += 1;
      }
      // One line that is inserted or removed moves all that follow.
      if (shift === before && line.text === textAt(request, record)) return;
      findings.add(
        `${stream.whereIs(line)}, and ${placeOf(request)}`,
        `${record.usage_id}: in the usage records ${describeChange(record, request.record)}`,
      );
    },
    leave({ line, record, stream }) {
      const { segment, line: number } = record.log!;
      const last = coverage.of(segment).at(-1);
      const isLost = !stream.closed || !last || last.lines < number;
      stream.counts.left += 1;
      totals.recorded(record, isLost ? "lost" : "left");
      if (isLost)
        findings.add(
          stream.whereIs(line),
          `${record.usage_id}: its lines are gone: there is no spend/${segment}, and no line of ` +
            `days.jsonl has its line ${number}`,
        );
      else if (line.text !== JSON.stringify(record) || record.day !== stream.day)
        findings.add(stream.whereIs(line), "is not what a gateway writes: it was changed");
    },
    refuse({ line, record, stream }) {
      const { segment, line: number } = record.log!;
      const lines = ends.get(segment) ?? 0;
      const isCut = number > lines;
      stream.counts[isCut ? "left" : "removed"] += 1;
      totals.recorded(record, isCut ? "lost" : "unequal");
      const what = isCut
        ? `its lines are gone: spend/${segment} ends after line ${lines}, before line ${number}`
        : "in the usage records, without lines of its own in the spend log " +
          `(it names line ${number} of spend/${segment})`;
      findings.add(stream.whereIs(line), `${record.usage_id}: ${what}`);
    },
    segmentEnded(segment, lines) {
      ends.set(segment, lines);
      shift = 0;
    },
  };
}

/** Where the lines of a request stand, for the operator. */
export function placeOf({ record, opened }: Expected): string {
  const { segment, line } = record.log!;
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return `spend/${segment}, line ${line} (${open})`;
}

/** The line of a request's record, if it stood where another record says. */
const textAt = ({ record }: Expected, { log }: UsageRecord): string =>
  JSON.stringify({ ...record, log: { ...record.log, line: log?.line } });

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
