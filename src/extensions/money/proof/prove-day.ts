// One day: compares its records with the settled requests that are booked on it, segment by
// segment, and all of them with the line of the day. Holds the lines of one segment's records.
import { join } from "node:path";
import type { ClosedDay } from "../days/index.ts";
import { usageRecord, type Dimension, type SumBy, type UsageRecord } from "../records/index.ts";
import { createRecordAdder, createSegmentReader, differencesFrom } from "../usage/index.ts";
import { createFindings } from "./findings.ts";
import { createJudge, type Comparison, type DayTally, type HeldLine } from "./judge.ts";

/** What is proved of a day. */
export interface DayProof extends DayTally {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** What days.jsonl says of it. Undefined: it is open. */
  readonly closed: ClosedDay | undefined;
  /** How many lines its records have. */
  readonly lines: number;
  /** Whether the records are exactly those of the line of the day. Of an open day: true. */
  readonly isProved: boolean;
  /** What its records add up to, by all dimensions. */
  readonly sums: readonly SumBy<Dimension>[];
  /** Reads the day again, and yields the records that it should have, in the order of the log. */
  records(): AsyncIterable<readonly UsageRecord[]>;
}

/** Compares a day, and reports what is wrong. */
export async function proveDay(
  day: string,
  closed: ClosedDay | undefined,
  context: Comparison,
): Promise<DayProof> {
  const { tally, adder, records } = compareDay(day, closed, context);
  for await (const _batch of records);
  const found = adder.result();
  const unequal = closed ? differencesFrom(closed, found) : [];
  if (unequal.length > 0)
    context.findings.add(
      `${context.source.nameOf(day)}, lines 1 to ${found.records}`,
      `are not those that line ${closed?.number} of days.jsonl has: ${unequal.join(", ")}`,
    );
  return {
    ...tally,
    day,
    closed,
    lines: found.records,
    isProved: unequal.length === 0,
    sums: adder.sums(),
    records: () => compareDay(day, closed, { ...context, findings: createFindings() }).records,
  };
}

/**
 * Compares a day while `records` is read: those that it should have, in the order of the log. They
 * are the records of its requests, and those whose lines are gone.
 */
function compareDay(day: string, closed: ClosedDay | undefined, context: Comparison) {
  const { spendDir, segments, coverage, source } = context;
  const adder = createRecordAdder();
  const judge = createJudge(day, closed !== undefined, context);

  /** The lines of one segment after the other, by the ids of their records. */
  async function* linesBySegment(): AsyncGenerator<readonly [string, Map<string, HeldLine>]> {
    let segment = "";
    let held = new Map<string, HeldLine>();
    for await (const { lines, bytes } of source.linesOf(day)) {
      adder.add(lines, bytes);
      for (const { line, text, record } of lines) {
        const id = record?.usage_id ?? "";
        const next = record?.log?.segment ?? segment;
        if (next > segment) {
          yield [segment, held];
          segment = next;
          held = new Map();
        }
        // No request has the id of a line without a record, or of a second record.
        held.set(held.has(id) ? `line ${line}` : id, { line, text });
      }
    }
    yield [segment, held];
  }

  /** Yields the records of its requests, batch by batch, then those whose lines are gone. */
  async function* compareSegment(
    name: string,
    lines: Map<string, HeldLine>,
  ): AsyncGenerator<readonly UsageRecord[]> {
    let shift = 0;
    const reader = createSegmentReader(join(spendDir, name), name);
    for await (const { settled } of reader.read(segments.get(name)?.days.get(day) ?? 0)) {
      const records: UsageRecord[] = [];
      for (const request of settled) {
        const { settle, log } = request;
        if (coverage.bookedDay(name, log.line, settle.time) !== day) continue;
        const record = usageRecord(settle, day, log);
        const line = lines.get(record.usage_id);
        if (line) shift = judge.pair(request, record, line, shift);
        else judge.missing(request, record);
        lines.delete(record.usage_id);
        records.push(record);
      }
      yield records;
    }
    yield [...lines.values()].flatMap((line) => judge.alone(line) ?? []);
  }

  async function* records(): AsyncGenerator<readonly UsageRecord[]> {
    const names = [...segments].filter(([, { days }]) => days.has(day)).map(([name]) => name);
    for await (const [segment, lines] of linesBySegment()) {
      while (names[0] !== undefined && names[0] < segment)
        yield* compareSegment(names.shift()!, new Map());
      if (names[0] === segment) names.shift();
      yield* compareSegment(segment, lines);
    }
    for (const name of names) yield* compareSegment(name, new Map());
  }

  return { tally: judge.tally, adder, records: records() };
}
