// One day: what its records are to the spend log, and whether they are those of the line of the
// day.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { ClosedDay } from "../days/index.ts";
import type { Dimension, SumBy, UsageRecord } from "../records/index.ts";
import { createRecordAdder, differencesFrom, type RecordAdder } from "../usage/index.ts";
import {
  compareDay,
  compareLogs,
  type Comparison,
  type Expected,
  type Pair,
} from "./compare-day.ts";
import type { RecordLine } from "./record-source.ts";
import { addToSpan, emptySpan, spanOf, type ProofTotals } from "./totals.ts";

/** How the records of a day compare with the spend log. */
export interface DayCounts {
  /** Settled requests that are not in the records. */
  added: number;
  /** Records that say something else than the log. */
  changed: number;
  /** Records that no settled request has. */
  removed: number;
  /** Records that are as the log has them. */
  unchanged: number;
  /** Records whose lines are gone with their segments. */
  left: number;
  /** Settled requests that were not copied when the proof began. */
  awaited: number;
}

/** What is proved of a day. */
export interface DayProof {
  /** `YYYY-MM-DD` in UTC. */
  readonly day: string;
  /** What days.jsonl says of it. Undefined: it is open. */
  readonly closed: ClosedDay | undefined;
  /** How its records compare with the spend log. */
  readonly counts: DayCounts;
  /** Whether the records are exactly those of the line of the day. Of an open day: true. */
  readonly isProved: boolean;
  /** What its records add up to, by all dimensions. */
  readonly sums: readonly SumBy<Dimension>[];
  /** Reads the day again, and yields the records that it should have, in the order of the log. */
  records(): AsyncIterable<readonly UsageRecord[]>;
}

/** Compares a day, adds it to `totals`, and reports what is wrong. */
export async function proveDay(
  day: string,
  closed: ClosedDay | undefined,
  comparison: Comparison,
  totals: ProofTotals,
): Promise<DayProof> {
  const { source, findings } = comparison;
  const name = source.nameOf(day);
  const counts = { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0, awaited: 0 };
  const left = emptySpan();

  function judge(pair: Pair): void {
    const { kind, where, what } = verdictOn(pair, name, closed !== undefined, comparison);
    counts[kind] += 1;
    if (what) findings.add(where, what);
    if (pair.request?.isDue) totals.settled.addRecord(pair.request.record);
    const record = pair.line?.record;
    if (!record || kind === "awaited") return;
    if (kind === "left") addToSpan(left, spanOf(record));
    else totals.recorded.addRecord(record);
    if (kind === "unchanged") addToSpan(totals.equal, spanOf(record));
  }

  const adder = createRecordAdder();
  const lines = (added: RecordAdder) => linesOn(day, closed !== undefined, comparison, added);
  for await (const _records of compareDay(day, lines(adder), comparison, judge));
  const found = adder.result();
  const unequal = closed ? differencesFrom(closed, found) : [];
  if (unequal.length > 0)
    findings.add(
      `${name}, lines 1 to ${found.records}`,
      `are not those that line ${closed?.number} of days.jsonl has: ${unequal.join(", ")}`,
    );
  const isProved = unequal.length === 0;
  addToSpan(closed && isProved ? totals.retired : totals.notProved, left);
  const records = () => compareDay(day, lines(createRecordAdder()), comparison, () => undefined);
  return { day, closed, counts, isProved, sums: adder.sums(), records };
}

/** The lines of a day's records, which are added up. Those of a closed day must be in order. */
async function* linesOn(
  day: string,
  isClosed: boolean,
  { source, findings }: Comparison,
  adder: RecordAdder,
): AsyncGenerator<RecordLine, undefined> {
  let last: RecordLine | undefined;
  for await (const { lines, bytes } of source.linesOf(day)) {
    adder.add(lines, bytes);
    for (const line of lines) {
      if (isClosed && last && !isInOrder(last, line))
        findings.add(
          `${source.nameOf(day)}, line ${line.line}`,
          `is not in the order of the log: it or line ${line.line - 1} was moved or inserted`,
        );
      if (line.record) last = line;
      yield line;
    }
  }
  return undefined;
}

const isInOrder = (one: RecordLine, other: RecordLine): boolean =>
  !other.record || (one.line < other.line && compareLogs(one.record!.log!, other.record.log!) < 0);

/** What a pair shows. */
interface Verdict {
  /** What it counts as. */
  readonly kind: keyof DayCounts;
  /** Where something is wrong. */
  readonly where: string;
  /** What is wrong. Undefined: nothing, or what the pair before has shown already. */
  readonly what?: string;
}

/** `name`: what the lines are read from, for the operator. */
function verdictOn(
  { request, line, nextLine, isOffAsBefore }: Pair,
  name: string,
  isClosed: boolean,
  comparison: Comparison,
): Verdict {
  if (!line) {
    const where = request ? placeOf(request) : "";
    const what = `${request?.record.usage_id}: settled, and not in ${name}, line ${nextLine}`;
    return request?.isDue ? { kind: "added", where, what } : { kind: "awaited", where };
  }
  const { record, text } = line;
  const where = `${name}, line ${line.line}`;
  if (!record?.log) return { kind: "removed", where, what: "is no usage record" };
  if (!request) return verdictAlone(record, where, isClosed, comparison);
  if (text === JSON.stringify(request.record)) return { kind: "unchanged", where };
  // One line that is inserted or removed moves all that follow: the first of them is named.
  const moved = { ...request.record, log: { ...request.log, line: record.log.line } };
  if (isOffAsBefore && text === JSON.stringify(moved)) return { kind: "changed", where };
  return {
    kind: "changed",
    where: `${where}, and ${placeOf(request)}`,
    what: `${record.usage_id}: in the usage records ${describeChange(record, request.record)}`,
  };
}

/** What a record shows that no request has. */
function verdictAlone(
  { usage_id, log }: UsageRecord,
  where: string,
  isClosed: boolean,
  { spendDir, segments, coverage }: Comparison,
): Verdict {
  const { segment, line } = log!;
  const known = segments.get(segment);
  const last = known?.end.lines ?? 0;
  const what = `${usage_id}: in the usage records, without lines of its own in the spend log`;
  if (line <= last)
    return { kind: "removed", where, what: `${what} (it names spend/${segment}, line ${line})` };
  const isListed = (coverage.of(segment).at(-1)?.lines ?? 0) >= line;
  if (isClosed && !known && isListed) return { kind: "left", where };
  // A gateway that runs meanwhile has written more.
  const now = statSync(join(spendDir, segment), { throwIfNoEntry: false });
  if (now && now.size > (known?.size ?? 0)) return { kind: "awaited", where };
  const why = known
    ? `spend/${segment} ends after line ${last}, before line ${line}`
    : `there is no spend/${segment}, and no line of days.jsonl has its line ${line}`;
  return { kind: "left", where, what: `${usage_id}: its lines are gone: ${why}` };
}

/** Where the lines of a request stand, for the operator. */
function placeOf({ log, opened }: Expected): string {
  const open = opened === 0 ? "without an open line" : `opened in line ${opened}`;
  return `spend/${log.segment}, line ${log.line} (${open})`;
}

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
