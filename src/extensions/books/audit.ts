// The proof of the books: every opened request is settled once, and stands in the usage records once, as it was settled. Both sides are
// summed up in buckets by their ids, in flat memory; only where the sums differ are the records compared, some buckets at a time, in
// further readings. What cannot be read or contradicts itself is a difference. What the spend log no longer reaches is proved by the
// sums that its deleted segments have left (audit-orphans.ts), or else is a difference.
import { createOrphans, type RecordSpan } from "./audit-orphans.ts";
import { createTotals, openSides, type Sides } from "./audit-sides.ts";
import {
  BUCKETS,
  bucketOf,
  contradictionIn,
  fingerprint,
  textOf,
  USAGE_COLUMNS,
  type UsageRecord,
} from "./records.ts";
import { DAY_MS } from "../../core/config/schema.ts";
import type { Ledger } from "./sync.ts";

const MAX_COMPARED = 500_000; // records that are held at once, of both sides
const MAX_TOLD = 10_000; // differences that are told one by one

/** When the first and the last of some requests ended; null where there are none. */
interface Span {
  readonly from: string | null;
  readonly to: string | null;
}
/** What an audit found. Costs are exact decimals by currency. */
export interface AuditResult {
  readonly ok: boolean;
  /** Requests in the spend log. */
  readonly settled: number;
  /** Usage records that they are compared with. */
  readonly recorded: number;
  readonly in_flight: number;
  readonly cost_settled: Readonly<Record<string, string>>;
  readonly cost_recorded: Readonly<Record<string, string>>;
  /** Requests of the spend log that are in the usage records once, just as they were settled; the span is that of the spend log. */
  readonly proved: { readonly requests: number } & Span;
  /** Usage records without lines in the spend log that the sums of deleted segments prove. */
  readonly retired: RecordSpan;
  /** Usage records that are older than `spend.keep_days` and that neither lines in the spend log nor such sums prove. */
  readonly not_proved: RecordSpan;
  readonly differences: readonly string[];
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

/** What has been found so far, and what it is judged by. */
interface Findings {
  readonly tell: (difference: string) => void;
  readonly settled: ReturnType<typeof createTotals>;
  readonly recorded: ReturnType<typeof createTotals>;
  /** Records without lines in the spend log. */
  readonly orphans: ReturnType<typeof createOrphans>;
  /** Of what was settled, less what is recorded. */
  readonly sums: BigUint64Array;
  /** Records of both sides, by bucket. */
  readonly counts: Uint32Array;
}

/** Whether the spend log does not reach back to a record, so that it has no lines there, unless its time was altered. */
function isOutOfReach({ ended_at }: UsageRecord, { settled }: Findings): boolean {
  const { from } = settled.span();
  return from === null || ended_at < from;
}

/** Adds up both sides. Resolves with the number of requests that are on their way. */
async function addUp(sides: Sides, findings: Findings): Promise<number> {
  const { tell, settled, recorded, orphans, sums, counts } = findings;
  const check = (record: UsageRecord, side: string) => {
    const contradiction = contradictionIn(record);
    if (contradiction) tell(`${record.usage_id}: ${side}, but ${contradiction}`);
  };
  const inFlight = await sides.settledAndWrong((record) => {
    check(record, "settled");
    settled.add(record);
    sums[bucketOf(record)]! += fingerprint(record);
    counts[bucketOf(record)]! += 1;
  }, tell);
  await sides.recorded((record) => {
    check(record, "recorded");
    if (isOutOfReach(record, findings)) {
      orphans.add(record);
      if (orphans.isYoung(record)) recorded.add(record);
      return;
    }
    recorded.add(record);
    sums[bucketOf(record)]! -= fingerprint(record);
    counts[bucketOf(record)]! += 1;
  }, tell);
  return inFlight;
}

/** The buckets whose sums differ, in groups with no more records than may be held at once. */
function groupSuspects({ sums, counts }: Findings): Set<number>[] {
  const groups: Set<number>[] = [];
  let room = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket += 1) {
    if (sums[bucket] === 0n) continue;
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

type ById = ReadonlyMap<string, readonly UsageRecord[]>;
function addById(map: Map<string, UsageRecord[]>, record: UsageRecord): void {
  const list = map.get(record.usage_id) ?? [];
  list.push(record);
  map.set(record.usage_id, list);
}

/** Compares the records of a group of buckets. Resolves with the number of requests that are not in the usage records as settled. */
async function compareGroup(
  sides: Sides,
  group: ReadonlySet<number>,
  findings: Findings,
): Promise<number> {
  const expected = new Map<string, UsageRecord[]>();
  await sides.settled((record) => {
    if (group.has(bucketOf(record))) addById(expected, record);
  });
  const found = new Map<string, UsageRecord[]>();
  await sides.recorded((record) => {
    if (!group.has(bucketOf(record))) return;
    const hasLines = expected.has(record.usage_id);
    const isOrphan = isOutOfReach(record, findings);
    if (hasLines && isOrphan) takeBack(record, findings);
    if (hasLines || !isOrphan) addById(found, record);
  });
  collectOrphans(expected, found, findings);
  return judgeSettled(expected, found, findings);
}

/** A record whose time was altered, so that the spend log did not seem to reach back to it. */
function takeBack(record: UsageRecord, { orphans, recorded }: Findings): void {
  orphans.remove(record);
  if (!orphans.isYoung(record)) recorded.add(record);
}

/** Records without lines in the spend log. */
function collectOrphans(expected: ById, found: ById, { orphans, recorded }: Findings): void {
  for (const [id, records] of found) {
    if (expected.has(id)) continue;
    for (const record of records) {
      orphans.add(record);
      if (!orphans.isYoung(record)) recorded.remove(record);
    }
  }
}

function judgeSettled(expected: ById, found: ById, { tell }: Findings): number {
  let unequal = 0;
  for (const [id, settles] of expected) {
    const records = found.get(id) ?? [];
    const texts = [...settles, ...records].map(textOf);
    const isEqual = settles.length === 1 && records.length === 1 && texts[0] === texts[1];
    if (isEqual) continue;
    unequal += settles.length;
    if (settles.length > 1) tell(`${id}: settled in more than one segment`);
    if (records.length === 0) tell(`${id}: settled, and not in the usage records`);
    if (records.length > 1) tell(`${id}: ${records.length} times in the usage records`);
    const [settle] = settles;
    for (const record of settle ? records : []) {
      if (settle && textOf(record) !== textOf(settle))
        tell(`${id}: in the usage records ${describeChange(record, settle)}`);
    }
  }
  return unequal;
}

/** In which columns two records differ, with the recorded and the settled value. */
const describeChange = (recorded: UsageRecord, settled: UsageRecord): string =>
  USAGE_COLUMNS.filter((column) => recorded[column] !== settled[column])
    .map(
      (column) =>
        `${column} is ${JSON.stringify(recorded[column])}, settled as ${JSON.stringify(settled[column])}`,
    )
    .join(", ");

/** Compares what has been copied into the usage records with what was settled. The caller holds the books. `faults`: why a sync just
 * before it could not copy. */
export async function auditBooks(
  ledger: Ledger,
  faults: readonly string[] = [],
): Promise<AuditResult> {
  const differences = createDifferences();
  const keptSince = new Date(ledger.now() - ledger.keepDays * DAY_MS).toISOString();
  const findings: Findings = {
    tell: differences.add,
    settled: createTotals(),
    recorded: createTotals(),
    orphans: createOrphans(keptSince),
    sums: new BigUint64Array(BUCKETS),
    counts: new Uint32Array(BUCKETS),
  };
  const sides = await openSides(ledger);
  const damages = (await ledger.store.inspect()).map(({ detail }) => detail);
  for (const text of [...faults, ...damages, ...(await sides.changedSegments())])
    findings.tell(text);
  const in_flight = await addUp(sides, findings);
  let unequal = 0;
  for (const group of groupSuspects(findings))
    unequal += await compareGroup(sides, group, findings);
  const { settled, recorded, orphans, tell } = findings;
  const { proved, notProved, youngTaken } = orphans.judge(sides.retired(tell), tell);
  recorded.removeAll(youngTaken);
  const found = differences.list();
  return {
    ok: found.length === 0,
    settled: settled.count(),
    recorded: recorded.count(),
    in_flight,
    cost_settled: settled.costs(),
    cost_recorded: recorded.costs(),
    proved: { requests: settled.count() - unequal, ...settled.span() },
    retired: proved,
    not_proved: notProved,
    differences: found,
  };
}
