// One day: compares its records with the settled requests that are booked on it, segment by
// segment, and all of them with the line of the day. The lines of one segment's records are held in
// memory.
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

/** A settled request, and the record that it should have. */
type Booked = Settled & { readonly record: UsageRecord };

/** A line of the records. It is not held as a record: that takes more memory. */
interface HeldLine extends Pick<UsageLine, "text"> {
  /** Its number. */
  readonly line: number;
}

/** A request and the line of its record, or one of them alone. */
interface Pair {
  /** Absent: no request of the day has the line. */
  readonly request?: Booked;
  /** Absent: the request has no record. */
  readonly line?: HeldLine | undefined;
}

type Batches = AsyncIterable<UsageBatch>;

/** Yields pairs in the order of the log; behind those of a segment, its lines without a request. */
async function* joinDay(day: string, log: Log, batches: Batches): AsyncGenerator<Pair[]> {
  const names = [...log.segments].filter(([, { days }]) => days.has(day)).map(([name]) => name);
  for await (const [segment, held] of bySegment(batches)) {
    while (names[0] !== undefined && names[0] < segment)
      yield* joinSegment(day, log, names.shift()!, new Map());
    if (names[0] === segment) names.shift();
    yield* joinSegment(day, log, segment, held);
  }
  for (const name of names) yield* joinSegment(day, log, name, new Map());
}

/** The lines of one segment after the other, by the ids of their records. */
async function* bySegment(batches: Batches): AsyncGenerator<[string, Map<string, HeldLine>]> {
  let segment = "";
  let held = new Map<string, HeldLine>();
  for await (const { lines, first } of batches)
    for (const [at, { text, record }] of lines.entries()) {
      const line = first + at;
      const next = record?.log?.segment ?? segment;
      if (next > segment) {
        yield [segment, held];
        segment = next;
        held = new Map();
      }
      const id = record?.usage_id ?? "";
      // No request has the id of a line without a record, or of a second record.
      held.set(held.has(id) ? `line ${line}` : id, { line, text });
    }
  yield [segment, held];
}

async function* joinSegment(
  day: string,
  { spendDir, segments, coverage }: Log,
  name: string,
  lines: Map<string, HeldLine>,
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

/** The records that a day should have: those of its requests, and those whose lines are gone. */
async function* recordsOf(
  day: string,
  log: Log,
  batches: Batches,
): AsyncGenerator<readonly UsageRecord[]> {
  for await (const pairs of joinDay(day, log, batches))
    yield pairs.flatMap(({ request, line }) => {
      if (request) return request.record;
      const record = parseUsageLine(line!.text);
      return record && isLeft(record, log) ? record : [];
    });
}

/** Whether the lines of a record are gone with their segment, or with its end. */
const isLeft = ({ log }: UsageRecord, { segments }: Log): boolean =>
  log !== undefined && log.line > (segments.get(log.segment)?.end.lines ?? 0);

/** What is proved of a day. */
export interface DayProof {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** What days.jsonl says of it. Undefined: it is open. */
  readonly closed: ClosedDay | undefined;
  /** How many lines its records have. */
  readonly lines: number;
  /** Whether the records are exactly those of the line of the day. Of an open day: true. */
  readonly isProved: boolean;
  /** How its records compare with the spend log. */
  readonly totals: Totals;
  /** What its records add up to, by all dimensions. */
  readonly sums: readonly SumBy<Dimension>[];
  /** The segments whose lines are gone and whose records are not. */
  readonly gone: ReadonlySet<string>;
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
  const gone = new Set<string>();
  /** The line of the records where the next one should stand. */
  let next = 1;
  let lastMoved: string | undefined;

  async function* addedUp(): AsyncGenerator<UsageBatch> {
    for await (const batch of source.linesOf(day)) {
      adder.add(batch);
      yield batch;
    }
  }

  function report({ request, line }: Pair, { verdict, what, moved }: Judgement): void {
    const places = [...(line ? [`${name}, line ${line.line}`] : []), ...placeInLog(request)];
    const missing = line ? "" : `, and not in ${name}, line ${next}`;
    // One line that is inserted or removed moves all that follow: the first of them is named.
    const isNamed = moved !== undefined && moved === lastMoved;
    lastMoved = moved;
    if (what !== undefined && !isNamed) findings.add(places.join(", and "), `${what}${missing}`);
    if (!line || verdict === "removed" || verdict === "unreadable") return;
    // In an open day they are in any order.
    if (closed && line.line !== next)
      findings.add(
        `${name}, line ${line.line}`,
        `is not in the order of the log: it or line ${line.line - 1} was moved or inserted`,
      );
    next = line.line + 1;
  }

  for await (const pairs of joinDay(day, log, addedUp()))
    for (const pair of pairs) {
      const judgement = judge(pair, closed !== undefined, log);
      const { verdict, record, altered } = judgement;
      addTotal(totals[verdict], totalOf(record));
      if (altered) addTotal(totals.altered, totalOf(altered));
      if (verdict === "left") gone.add(record!.log!.segment);
      report(pair, judgement);
    }
  const found = adder.result();
  const unequal = closed ? differencesFrom(closed, found) : [];
  if (unequal.length > 0)
    findings.add(
      `${name}, lines 1 to ${found.records}`,
      `are not those that line ${closed?.number} of days.jsonl has: ${unequal.join(", ")}`,
    );
  const isProved = unequal.length === 0;
  const records = () => recordsOf(day, log, source.linesOf(day));
  const lines = found.records;
  return { day, closed, lines, isProved, totals, sums: adder.sums(), gone, records };
}

/** What a pair shows. */
interface Judgement {
  readonly verdict: Verdict;
  /** The record that counts. Undefined: a line that is none. */
  readonly record: UsageRecord | undefined;
  /** What stands in its place. */
  readonly altered?: UsageRecord;
  /** What is wrong. Absent or undefined: nothing. */
  readonly what?: string | undefined;
  /** By how many lines of which segment the request was moved. Absent: more than that is wrong. */
  readonly moved?: string | undefined;
}

const judge = ({ request, line }: Pair, isClosed: boolean, log: Log): Judgement =>
  request ? judgeRequest(request, line, log) : judgeLine(line!, isClosed, log);

function judgeRequest(
  { log, record }: Booked,
  line: HeldLine | undefined,
  { segments }: Log,
): Judgement {
  if (!line) {
    const isDue = log.line <= segments.get(log.segment)!.dueLines;
    if (!isDue) return { verdict: "awaited", record };
    return { verdict: "added", record, what: `${record.usage_id}: settled` };
  }
  if (line.text === JSON.stringify(record)) return { verdict: "unchanged", record };
  const altered = parseUsageLine(line.text)!;
  const what = `${record.usage_id}: in the usage records ${describeChange(altered, record)}`;
  const place = { ...log, line: altered.log!.line };
  const isMoved = line.text === JSON.stringify({ ...record, log: place });
  const moved = isMoved ? `${log.segment} ${log.line - place.line}` : undefined;
  return { verdict: "changed", record, altered, what, moved };
}

/** Judges a line that no request of its day has. */
function judgeLine({ text }: HeldLine, isClosed: boolean, log: Log): Judgement {
  const record = parseUsageLine(text);
  if (!record?.log) return { verdict: "unreadable", record: undefined, what: "is no usage record" };
  const { segment, line } = record.log;
  const place = `spend/${segment}, line ${line}`;
  if (!isLeft(record, log)) {
    const inserted = "in the usage records, without lines of its own in the spend log";
    const what = `${record.usage_id}: ${inserted} (it names ${place})`;
    return { verdict: "removed", record, what };
  }
  const isListed = (log.coverage.of(segment).at(-1)?.lines ?? 0) >= line;
  const isRetired = isClosed && isListed && !log.segments.has(segment);
  const gone = `${record.usage_id}: its lines are gone: ${place} is not there`;
  return { verdict: "left", record, what: isRetired ? undefined : gone };
}

/** Where the lines of a request stand, for the operator. */
function placeInLog(request: Booked | undefined): readonly string[] {
  if (!request) return [];
  const { log, opened } = request;
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return [`spend/${log.segment}, line ${log.line} (${open})`];
}

/** The members in which two records differ, with the recorded and the settled value. */
function describeChange(recorded: UsageRecord, settled: UsageRecord): string {
  const names = Object.keys({ ...recorded, ...settled }) as (keyof UsageRecord)[];
  const texts = names.flatMap((name) => {
    const [was, is] = [recorded, settled].map((record) => JSON.stringify(record[name]) ?? "absent");
    return was === is ? [] : `${name} is ${was}, settled as ${is}`;
  });
  return texts.join(", ") || "the line is not what a gateway writes";
}
