// Records against segments. Segments are read one after the other, and the files of all days that
// they have requests on beside them: each has its records in the order of the log. So both sides
// meet, and only what does not is held in memory, until the end of its segment.
import { usageRecord } from "../records/index.ts";
import type { Settled } from "../usage/index.ts";
import type { Coverage } from "../days/index.ts";
import { openDay, type DayStream } from "./day-stream.ts";
import type { Findings } from "./findings.ts";
import { createJudge, placeOf, type Expected, type Found, type ProofTotals } from "./judge.ts";
import type { RecordLine, RecordSource } from "./record-source.ts";

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
  /**
   * Takes a settled request of the segment that is being read. `isDue`: the records should have it.
   */
  settled(request: Settled, isDue: boolean): Promise<void>;
  /** The segment with this name ends after so many lines. Resolves with how many were not due. */
  endSegment(segment: string, lines: number): Promise<number>;
  /** All segments were read: takes the rest of all days. */
  finish(): Promise<void>;
}

export function createJoin(options: JoinOptions): Join {
  const { source, coverage, closed, present, findings, totals } = options;
  const streams = new Map<string, DayStream>();
  const expected = new Map<string, Expected>();
  const found = new Map<string, Found>();
  const judge = createJudge({
    coverage,
    findings,
    totals,
    countsOf: (day) => streamOf(day).counts,
  });

  function streamOf(day: string): DayStream {
    const stream = streams.get(day) ?? openDay(source, day, closed.get(day), findings);
    streams.set(day, stream);
    return stream;
  }

  const active = (): readonly DayStream[] =>
    [...streams.values()].filter((stream) => !stream.isDone());

  /** Takes the records of a day up to a line of a segment. */
  async function takeUpTo(stream: DayStream, segment: string, line: number): Promise<void> {
    for (let next = await stream.current(); next; next = await stream.current()) {
      const log = next.record?.log;
      if (log && (log.segment > segment || (log.segment === segment && log.line > line))) return;
      stream.take();
      takeRecord(next, stream, segment);
    }
  }

  function takeRecord(line: RecordLine, stream: DayStream, segment: string): void {
    const { record } = line;
    if (!record?.log) {
      findings.add(stream.whereIs(line), "is no usage record");
      stream.counts.removed += 1;
      return;
    }
    const id = record.usage_id;
    const taken = { line, record, stream };
    const isHere = record.log.segment === segment;
    const request = isHere ? expected.get(id) : undefined;
    if (request) {
      expected.delete(id);
      judge.match(request, taken);
    } else if (!present.has(record.log.segment)) judge.leave(taken);
    else if (!isHere || found.has(id)) judge.refuse(taken);
    else found.set(id, taken);
  }

  return {
    async settled({ settle, log, opened }, isDue) {
      const day = coverage.bookedDay(log.segment, log.line, settle.time);
      const record = usageRecord(settle, day, log);
      const request = { record, opened, isDue };
      if (isDue) totals.settled(record);
      const known = found.get(record.usage_id);
      found.delete(record.usage_id);
      if (known) judge.match(request, known);
      else expected.set(record.usage_id, request);
      const stream = streamOf(day);
      await takeUpTo(stream, log.segment, log.line);
      if (expected.has(record.usage_id))
        expected.set(record.usage_id, { ...request, missingAt: stream.whereNext() });
    },
    async endSegment(segment, lines) {
      judge.segmentEnded(segment, lines);
      for (const stream of active()) await takeUpTo(stream, segment, Infinity);
      let awaited = 0;
      for (const [id, request] of expected) {
        if (!request.isDue) {
          awaited += 1;
          continue;
        }
        const { day } = request.record;
        streamOf(day).counts.added += 1;
        findings.add(placeOf(request), `${id}: settled, and not in ${request.missingAt}`);
      }
      for (const taken of found.values()) judge.refuse(taken);
      expected.clear();
      found.clear();
      for (const stream of active()) await stream.finishIfDone();
      return awaited;
    },
    async finish() {
      const days = new Set([...(await source.days()), ...streams.keys()]);
      for (const day of [...days].sort()) {
        const stream = streamOf(day);
        await takeUpTo(stream, LAST, 0);
        await stream.finishIfDone();
        totals.dayDone(day, stream.counts, stream.isProved());
      }
    },
  };
}

/** Comes after all names of segments. */
const LAST = "~";
