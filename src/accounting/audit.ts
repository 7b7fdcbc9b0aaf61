// The proof of the books: every opened request is settled once, and stands in the usage records once, as it was settled. Both sides are
// summed up in buckets by their ids, in flat memory; only where the sums differ are the records compared, bucket by bucket, in
// further readings. What cannot be read or contradicts itself is a difference; what the spend log no longer reaches is not proved,
// and said to be so.
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DAY_MS } from "../config/schema.ts";
import { formatMoney, parseMoney } from "./price.ts";
import {
  BUCKETS,
  bucketOf,
  contradictionIn,
  fingerprint,
  textOf,
  USAGE_COLUMNS,
  usageRecord,
  type UsageRecord,
} from "./records.ts";
import { byIdentity, describeStale, readSegment } from "./segments.ts";
import { segmentsIn, unclosedOf } from "./spend-log.ts";
import { copiedUpTo, type Ledger } from "./sync.ts";

const MAX_COMPARED = 500_000; // records that are held at once, of both sides
const MAX_TOLD = 10_000; // differences that are told one by one

/** A number of records, and the times at which the first and the last of them ended; null where there are none. */
export interface Span {
  readonly count: number;
  readonly from: string | null;
  readonly to: string | null;
}
/** What an audit found. Costs are exact decimals by currency. */
export interface AuditResult {
  readonly ok: boolean;
  /** Requests in the spend log, and the usage records that they are compared with. */
  readonly settled: number;
  readonly recorded: number;
  readonly in_flight: number;
  readonly cost_settled: Readonly<Record<string, string>>;
  readonly cost_recorded: Readonly<Record<string, string>>;
  /** Requests that are in the usage records once, just as they were settled. */
  readonly proved: { readonly requests: number } & Omit<Span, "count">;
  /** Usage records that are older than `spend.keep_days` and have no lines in the spend log any more. */
  readonly not_proved: { readonly records: number } & Omit<Span, "count">;
  readonly differences: readonly string[];
}

/** Counts records, their costs, and from when to when they ended. */
function createTotals() {
  const costs = new Map<string, bigint>();
  let [count, from, to] = [0, "", ""];
  return {
    add({ ended_at, currency, cost }: UsageRecord): void {
      count += 1;
      if (from === "" || ended_at < from) from = ended_at;
      if (ended_at > to) to = ended_at;
      costs.set(currency, (costs.get(currency) ?? 0n) + parseMoney(cost));
    },
    /** Takes one back; the span stays as it is. */
    remove({ currency, cost }: UsageRecord): void {
      count -= 1;
      costs.set(currency, (costs.get(currency) ?? 0n) - parseMoney(cost));
    },
    span: (): Span => ({ count, from: from || null, to: to || null }),
    costs: () =>
      Object.fromEntries(
        [...costs].sort().map(([currency, pico]) => [currency, formatMoney(pico)]),
      ),
  };
}

/** Differences, each told once; of very many the first ones, and how many there are. */
function createDifferences() {
  const texts = new Set<string>();
  let more = 0;
  return {
    add(text: string): void {
      if (texts.size < MAX_TOLD) texts.add(text);
      else if (!texts.has(text)) more += 1;
    },
    list: () => (more > 0 ? [...texts, `and ${more} more`] : [...texts]),
  };
}

/** Ranges of buckets, each with no more records than may be held at once. Buckets that are not `suspect` are in none. */
function groupBuckets(counts: Uint32Array, isSuspect: (bucket: number) => boolean): Set<number>[] {
  const groups: Set<number>[] = [];
  let room = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    if (!isSuspect(bucket)) continue;
    const records = counts[bucket] ?? 0;
    if (groups.length === 0 || records > room) {
      groups.push(new Set());
      room = MAX_COMPARED;
    }
    groups.at(-1)?.add(bucket);
    room -= records;
  }
  return groups;
}

/** In which columns two records differ, with the recorded and the settled value. */
function describeChange(recorded: UsageRecord, settled: UsageRecord): string {
  const changes = USAGE_COLUMNS.filter((column) => recorded[column] !== settled[column]).map(
    (column) =>
      `${column} is ${JSON.stringify(recorded[column])}, settled as ${JSON.stringify(settled[column])}`,
  );
  return changes.join(", ");
}

/** Compares what has been copied into the usage records with what was settled. The caller holds the books. `faults`: what a sync just
 * before it could not do. */
export async function auditBooks(
  ledger: Ledger,
  faults: readonly string[] = [],
): Promise<AuditResult> {
  const { dir, store, keepDays, now } = ledger;
  const differences = createDifferences();
  const marks = await store.marks();
  const positions = existsSync(dir) ? copiedUpTo(ledger, marks) : new Map<string, number>();
  for (const fault of faults) differences.add(fault);
  for (const fault of await store.inspect()) differences.add(fault.detail);
  /** Records that ended after this have their lines in the spend log. */
  const keptSince = new Date(now() - keepDays * DAY_MS).toISOString();

  /** Every settled request of the spend log, as far as it has been copied. `problem` hears of what is wrong in the log itself. */
  async function readSettled(
    take: (record: UsageRecord) => void,
    problem?: (segment: string, text: string) => void,
  ): Promise<number> {
    let inFlight = 0;
    for (const [segment, position] of positions) {
      const path = join(dir, segment);
      const content = await readSegment(path, position, {
        settled: (settle) => take(usageRecord(settle)),
        problem: (text) => problem?.(segment, `${text} in spend/${segment}`),
      });
      const open = new Set([...content.unsettled.keys()].filter((id) => !content.garbled.has(id)));
      inFlight += problem ? await onTheirWay(path, open, (text) => problem(segment, text)) : 0;
    }
    return inFlight;
  }

  /** How many of these requests are on their way. Of a segment that is closed none is: its last lines may stand behind the position. */
  async function onTheirWay(
    path: string,
    open: ReadonlySet<string>,
    problem: (text: string) => void,
  ): Promise<number> {
    if (existsSync(unclosedOf(path))) return open.size;
    const whole = await readSegment(path);
    const name = path.slice(dir.length + 1);
    for (const id of open) {
      if (whole.unsettled.has(id)) problem(`${id}: opened, never settled in spend/${name}`);
    }
    const { size } = await stat(path);
    if (whole.end < size) problem(`spend/${name} ends in the middle of a line`);
    return [...open].filter((id) => !whole.unsettled.has(id)).length;
  }

  const readRecorded = async (
    take: (record: UsageRecord) => void,
    unreadable: (what: string) => void = () => undefined,
  ): Promise<void> => {
    for await (const batch of store.records({ own: true, unreadable })) batch.forEach(take);
  };

  const settled = createTotals();
  const recorded = createTotals();
  const notProved = createTotals();
  const sums = new BigUint64Array(BUCKETS); // of what was settled, less what is recorded
  const counts = new Uint32Array(BUCKETS);
  let unequal = 0; // requests that are not in the usage records as they were settled

  await tellStale(ledger, marks, differences.add);
  const in_flight = await readSettled(
    (record) => {
      sums[bucketOf(record)]! += fingerprint(record);
      counts[bucketOf(record)]! += 1;
      settled.add(record);
      const contradiction = contradictionIn(record);
      if (contradiction) differences.add(`${record.usage_id}: settled, but ${contradiction}`);
    },
    (_, text) => differences.add(text),
  );
  const reach = settled.span().from ?? "9999";
  const isOutOfReach = ({ ended_at }: UsageRecord) => ended_at < reach && ended_at < keptSince;
  await readRecorded(
    (record) => {
      const contradiction = contradictionIn(record);
      if (contradiction) differences.add(`${record.usage_id}: recorded, but ${contradiction}`);
      if (isOutOfReach(record)) return notProved.add(record);
      sums[bucketOf(record)]! -= fingerprint(record);
      counts[bucketOf(record)]! += 1;
      recorded.add(record);
    },
    (line) => differences.add(`a line that is no usage record, in usage/${line}`),
  );

  const isSuspect = (bucket: number) => sums[bucket] !== 0n;
  for (const group of groupBuckets(counts, isSuspect)) {
    const isCompared = (record: UsageRecord) => group.has(bucketOf(record));
    const expected = new Map<string, UsageRecord[]>();
    await readSettled((record) => {
      if (!isCompared(record)) return;
      const others = expected.get(record.usage_id) ?? [];
      expected.set(record.usage_id, [...others, record]);
    });
    const found = new Map<string, UsageRecord[]>();
    await readRecorded((record) => {
      if (!isCompared(record) || (isOutOfReach(record) && !expected.has(record.usage_id))) return;
      found.set(record.usage_id, [...(found.get(record.usage_id) ?? []), record]);
    });
    compare(expected, found);
  }

  /** Tells how the records of some ids differ from what was settled under them. */
  function compare(
    expected: ReadonlyMap<string, readonly UsageRecord[]>,
    found: ReadonlyMap<string, readonly UsageRecord[]>,
  ): void {
    for (const [id, settles] of expected) {
      const records = found.get(id) ?? [];
      const [settle] = settles;
      const [record] = records;
      const isEqual =
        settles.length === 1 && records.length === 1 && textOf(settle!) === textOf(record!);
      if (isEqual) continue;
      unequal += settles.length;
      if (settles.length > 1) differences.add(`${id}: settled in more than one segment`);
      if (!record) differences.add(`${id}: settled, and not in the usage records`);
      if (records.length > 1)
        differences.add(`${id}: ${records.length} times in the usage records`);
      const changed = records.find((each) => textOf(each) !== textOf(settle!));
      if (changed)
        differences.add(`${id}: in the usage records ${describeChange(changed, settle!)}`);
    }
    for (const [id, records] of found) {
      if (expected.has(id)) continue;
      const young = records.find(({ ended_at }) => ended_at >= keptSince);
      if (young)
        differences.add(
          `${id}: in the usage records, ended ${young.ended_at}, without lines in the spend log`,
        );
      for (const record of young ? [] : records) {
        recorded.remove(record);
        notProved.add(record);
      }
    }
  }

  const { count, ...span } = settled.span();
  const { count: unproved, ...unprovedSpan } = notProved.span();
  const list = differences.list();
  return {
    ok: list.length === 0,
    settled: count,
    recorded: recorded.span().count,
    in_flight,
    cost_settled: settled.costs(),
    cost_recorded: recorded.costs(),
    proved: { requests: count - unequal, ...span },
    not_proved: { records: unproved, ...unprovedSpan },
    differences: list,
  };
}

/** Tells of segments that are not what was copied from them. */
async function tellStale(
  { dir, segments }: Ledger,
  marks: Parameters<typeof byIdentity>[0],
  tell: (text: string) => void,
): Promise<void> {
  const marksOf = byIdentity(marks);
  for (const name of existsSync(dir) ? segmentsIn(dir) : []) {
    const path = join(dir, name);
    const { stale } = segments.progressOf(path, name, marksOf);
    if (stale.length > 0) tell(describeStale(name, (await stat(path)).size, stale));
  }
}
