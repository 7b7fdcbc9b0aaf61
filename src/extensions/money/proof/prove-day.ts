// Proves one day: compares its records with the settled requests that are booked on it, segment by
// segment, and all of them with the line of the day. In memory are the record lines of one segment.
import { join } from "node:path";
import {
  parseUsageLine,
  usageRecord,
  type Dimension,
  type SumBy,
  type UsageBatch,
  type UsageLine,
  type UsageRecord,
} from "../records/index.ts";
import type { ClosedDay } from "../days/index.ts";
import {
  createRecordAdder,
  createSegmentReader,
  differencesFrom,
  type Settled,
} from "../usage/index.ts";
import type { Log } from "./prove-segment.ts";
import type { RecordSource } from "./record-source.ts";
import { addTotal, createTotals, totalOf, type Totals, type Verdict } from "./totals.ts";

/** A settled request with the record that the spend log implies. */
type BookedRequest = Settled & { readonly record: UsageRecord };

/** A line of the usage records. It is kept as text, because a parsed record takes more memory. */
interface RecordLine extends Pick<UsageLine, "text"> {
  /** Its number in the day. */
  readonly line: number;
}

/** A request and the line of its record, or one of them alone. */
interface Pair {
  /** Absent: no request of the day has the line. */
  readonly request?: BookedRequest;
  /** Absent: the request has no record. */
  readonly line?: RecordLine | undefined;
}

type Batches = AsyncIterable<UsageBatch>;

/**
 * Pairs the requests of a day with the lines of its records, in the order of the log. The lines of
 * a segment that have no request follow the pairs of that segment.
 */
async function* pairDay(day: string, log: Log, batches: Batches): AsyncGenerator<Pair[]> {
  const names = [...log.segments].filter(([, { days }]) => days.has(day)).map(([name]) => name);
  for await (const [segment, lines] of bySegment(batches)) {
    while (names[0] !== undefined && names[0] < segment)
      yield* pairSegment(day, log, names.shift()!, new Map());
    if (names[0] === segment) names.shift();
    yield* pairSegment(day, log, segment, lines);
  }
  for (const name of names) yield* pairSegment(day, log, name, new Map());
}

/** Yields the name of one segment after the other, with its lines by the ids of their records. */
async function* bySegment(batches: Batches): AsyncGenerator<[string, Map<string, RecordLine>]> {
  let segment = "";
  let byId = new Map<string, RecordLine>();
  for await (const { lines } of batches)
    for (const { text, record, number: line } of lines) {
      const next = record?.log?.segment ?? segment;
      if (next > segment) {
        yield [segment, byId];
        segment = next;
        byId = new Map();
      }
      const id = record?.usage_id ?? "";
      // A line that is no record, or repeats an id, gets an id that no request has.
      byId.set(byId.has(id) ? `line ${line}` : id, { line, text });
    }
  yield [segment, byId];
}

/** Pairs the requests of a day in one segment with the lines of the records that name it. */
async function* pairSegment(
  day: string,
  { spendDir, segments, coverage }: Log,
  name: string,
  lines: Map<string, RecordLine>,
): AsyncGenerator<Pair[]> {
  const reader = createSegmentReader(join(spendDir, name), name);
  for await (const { settled } of reader.read(segments.get(name)?.days.get(day) ?? 0)) {
    const pairs: Pair[] = [];
    for (const request of settled) {
      const { settle, log } = request;
      if (coverage.bookedDay(name, log.line, settle.time) !== day) continue;
      const record = usageRecord(settle, day, log);
      pairs.push({ request: { ...request, record }, line: lines.get(record.usage_id) });
      lines.delete(record.usage_id);
    }
    yield pairs;
  }
  yield [...lines.values()].map((line) => ({ line }));
}

/** Yields the records that a day should have: one for each request, and the unlogged ones. */
async function* expectedRecords(
  day: string,
  log: Log,
  batches: Batches,
): AsyncGenerator<readonly UsageRecord[]> {
  for await (const pairs of pairDay(day, log, batches))
    yield pairs.flatMap(({ request, line }) => {
      if (request) return request.record;
      const record = parseUsageLine(line!.text);
      return record && isUnlogged(record, log) ? record : [];
    });
}

/** Whether the settle line of a record is gone: its segment is deleted, or ends before it. */
const isUnlogged = ({ log }: UsageRecord, { segments }: Log): boolean =>
  log !== undefined && log.line > (segments.get(log.segment)?.end.lines ?? 0);

/** What is proved of a day. */
export interface DayProof {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** Its line in days.jsonl. Undefined: the day is open. */
  readonly closed: ClosedDay | undefined;
  /** How many lines its records have. */
  readonly lines: number;
  /** Whether the records are exactly those of the line of the day. An open day has none: true. */
  readonly matchesLine: boolean;
  /** How its records compare with the spend log. */
  readonly totals: Totals;
  /** The sums of its records by all dimensions. */
  readonly sums: readonly SumBy<Dimension>[];
  /** The segments, deleted or cut, whose lines its unlogged records name. */
  readonly cutSegments: ReadonlySet<string>;
  /** Reads the day again, and yields the records that it should have, in the order of the log. */
  records(): AsyncIterable<readonly UsageRecord[]>;
}

/** Compares a day, and reports what is wrong. */
export async function proveDay(
  day: string,
  closed: ClosedDay | undefined,
  log: Log,
  source: RecordSource,
): Promise<DayProof> {
  const { findings } = log;
  const name = source.nameOf(day);
  const adder = createRecordAdder();
  const totals = createTotals();
  const cutSegments = new Set<string>();
  /** The number of the line that the next record should have. */
  let expectedLine = 1;
  let lastShift: string | undefined;

  async function* addEachBatch(): AsyncGenerator<UsageBatch> {
    for await (const batch of source.linesOf(day)) {
      adder.add(batch);
      yield batch;
    }
  }

  function report({ request, line }: Pair, { verdict, problem, shift }: Comparison): void {
    const places = [...(line ? [`${name}, line ${line.line}`] : []), ...placeInLog(request)];
    const missing = line ? "" : `, and not in ${name}, line ${expectedLine}`;
    // An inserted or removed line shifts all that follow. Only the first of them is reported.
    const isRepeated = shift !== undefined && shift === lastShift;
    lastShift = shift;
    if (problem !== undefined && !isRepeated)
      findings.add(places.join(", and "), `${problem}${missing}`);
    if (!line || verdict === "inserted" || verdict === "unreadable") return;
    // The records of an open day may be in any order.
    if (closed && line.line !== expectedLine)
      findings.add(
        `${name}, line ${line.line}`,
        `is not in the order of the log: it or line ${line.line - 1} was moved or inserted`,
      );
    expectedLine = line.line + 1;
  }

  for await (const pairs of pairDay(day, log, addEachBatch()))
    for (const pair of pairs) {
      const comparison = compare(pair, closed !== undefined, log);
      const { verdict, record, changedRecord } = comparison;
      addTotal(totals[verdict], totalOf(record));
      if (changedRecord) addTotal(totals.changedRecords, totalOf(changedRecord));
      if (verdict === "unlogged") cutSegments.add(record!.log!.segment);
      report(pair, comparison);
    }
  const found = adder.result();
  const differences = closed ? differencesFrom(closed, found) : [];
  if (differences.length > 0)
    findings.add(
      `${name}, lines 1 to ${found.records}`,
      `are not those that line ${closed?.number} of days.jsonl has: ${differences.join(", ")}`,
    );
  const lines = found.records;
  const matchesLine = differences.length === 0;
  const sums = adder.sums();
  const records = () => expectedRecords(day, log, source.linesOf(day));
  return { day, closed, lines, matchesLine, totals, sums, cutSegments, records };
}

/** How a request and the line of its record compare, or what the one that is alone means. */
interface Comparison {
  readonly verdict: Verdict;
  /** The record of the request or, without one, of the line. Absent: the line is no record. */
  readonly record?: UsageRecord;
  /** The record of the line, if it differs from that of the request. */
  readonly changedRecord?: UsageRecord;
  /** What is wrong, for the operator. Absent or undefined: nothing. */
  readonly problem?: string | undefined;
  /**
   * Set if only the number of the settle line differs: the segment, and by how many lines. Absent
   * or undefined: nothing differs, or more than that.
   */
  readonly shift?: string | undefined;
}

const compare = ({ request, line }: Pair, isClosed: boolean, log: Log): Comparison =>
  request ? compareRequest(request, line, log) : classifyLine(line!, isClosed, log);

function compareRequest(
  { log, record }: BookedRequest,
  line: RecordLine | undefined,
  { segments }: Log,
): Comparison {
  if (!line) {
    const isDue = log.line <= segments.get(log.segment)!.dueLines;
    if (!isDue) return { verdict: "pending", record };
    return { verdict: "missing", record, problem: `${record.usage_id}: settled` };
  }
  if (line.text === JSON.stringify(record)) return { verdict: "same", record };
  const recorded = parseUsageLine(line.text)!;
  const problem = `${record.usage_id}: in the usage records ${describeChange(recorded, record)}`;
  const place = { ...log, line: recorded.log!.line };
  const isShifted = line.text === JSON.stringify({ ...record, log: place });
  const shift = isShifted ? `${log.segment} ${log.line - place.line}` : undefined;
  return { verdict: "changed", record, changedRecord: recorded, problem, shift };
}

/** Finds out what a line is that belongs to no request of its day. */
function classifyLine({ text }: RecordLine, isClosed: boolean, log: Log): Comparison {
  const record = parseUsageLine(text);
  if (!record?.log) return { verdict: "unreadable", problem: "is not a usage record" };
  const { segment, line } = record.log;
  const place = `spend/${segment}, line ${line}`;
  if (!isUnlogged(record, log)) {
    const inserted = "in the usage records, without lines of its own in the spend log";
    const problem = `${record.usage_id}: ${inserted} (it names ${place})`;
    return { verdict: "inserted", record, problem };
  }
  // The gateway deletes only whole segments, and only if closed days list all of their lines.
  const isListed = (log.coverage.of(segment).at(-1)?.lines ?? 0) >= line;
  const isExpected = isClosed && isListed && !log.segments.has(segment);
  const gone = `${record.usage_id}: its lines are gone: ${place} is not there`;
  return { verdict: "unlogged", record, problem: isExpected ? undefined : gone };
}

/** Where the lines of a request stand, for the operator. */
function placeInLog(request: BookedRequest | undefined): readonly string[] {
  if (!request) return [];
  const { log, opened } = request;
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return [`spend/${log.segment}, line ${log.line} (${open})`];
}

/** Lists the members in which two records differ, with the recorded and the settled value. */
function describeChange(recorded: UsageRecord, settled: UsageRecord): string {
  const names = Object.keys({ ...recorded, ...settled }) as (keyof UsageRecord)[];
  const texts = names.flatMap((name) => {
    const [was, is] = [recorded, settled].map((record) => JSON.stringify(record[name]) ?? "absent");
    return was === is ? [] : `${name} is ${was}, settled as ${is}`;
  });
  return texts.join(", ") || "the line is not what a gateway writes";
}
