// Compares single records of both sides, in the buckets whose sums differ.
import { USAGE_COLUMNS, type UsageRecord } from "../usage-records/index.ts";
import { BUCKETS, bucketOf, recordText } from "../books/index.ts";
import { isOutOfReach, type Findings } from "./findings.ts";
import type { Sides } from "./sides.ts";

/** How many records of both sides are held in memory at once. */
const MAX_COMPARED = 500_000;

type RecordsById = Map<string, UsageRecord[]>;

/**
 * Compares the records of all buckets that differ, and reports each difference. Resolves with the
 * number of requests that are not in the usage records once, as they were settled.
 */
export async function compareSuspects(sides: Sides, findings: Findings): Promise<number> {
  let unequal = 0;
  for (const group of groupSuspects(findings))
    unequal += await compareGroup(sides, group, findings);
  return unequal;
}

/** The buckets that differ, in groups with no more records than may be held at once. */
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

async function compareGroup(
  sides: Sides,
  group: ReadonlySet<number>,
  findings: Findings,
): Promise<number> {
  const expected: RecordsById = new Map();
  await sides.settled((record) => {
    if (group.has(bucketOf(record))) addById(expected, record);
  });
  const found: RecordsById = new Map();
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

function addById(map: RecordsById, record: UsageRecord): void {
  const records = map.get(record.usage_id) ?? [];
  records.push(record);
  map.set(record.usage_id, records);
}

/**
 * Takes a record back whose time was altered, so that the spend log did not seem to reach back to
 * it.
 */
function takeBack(record: UsageRecord, { orphans, recorded }: Findings): void {
  orphans.remove(record);
  if (!orphans.isYoung(record)) recorded.add(record);
}

/** Records without lines in the spend log. */
function collectOrphans(
  expected: RecordsById,
  found: RecordsById,
  { orphans, recorded }: Findings,
): void {
  for (const [id, records] of found) {
    if (expected.has(id)) continue;
    for (const record of records) {
      orphans.add(record);
      if (!orphans.isYoung(record)) recorded.remove(record);
    }
  }
}

/** Returns the number of requests that are not recorded once, as they were settled. */
function judgeSettled(
  expected: RecordsById,
  found: RecordsById,
  { differences }: Findings,
): number {
  let unequal = 0;
  for (const [id, settles] of expected) {
    const texts = differencesOf(settles, found.get(id) ?? []);
    if (texts.length === 0) continue;
    unequal += settles.length;
    for (const text of texts) differences.add(`${id}: ${text}`);
  }
  return unequal;
}
/**
 * Describes how the records of one request differ from its settle lines. There is at least one
 * line.
 */
function differencesOf(settles: readonly UsageRecord[], records: readonly UsageRecord[]): string[] {
  const texts: string[] = [];
  if (settles.length > 1) texts.push("settled in more than one segment");
  if (records.length === 0) texts.push("settled, and not in the usage records");
  if (records.length > 1) texts.push(`${records.length} times in the usage records`);
  const [settle] = settles;
  for (const record of records) {
    if (settle && recordText(record) !== recordText(settle))
      texts.push(`in the usage records ${describeChange(record, settle)}`);
  }
  return texts;
}

/** The columns in which two records differ, with the recorded and the settled value. */
const describeChange = (recorded: UsageRecord, settled: UsageRecord): string =>
  USAGE_COLUMNS.filter((column) => recorded[column] !== settled[column])
    .map(
      (column) =>
        `${column} is ${JSON.stringify(recorded[column])}, ` +
        `settled as ${JSON.stringify(settled[column])}`,
    )
    .join(", ");
