// UsageStore.rebuild() in PostgreSQL: what the spend log says goes into a temporary table, which is
// then compared with the records, all in one transaction. If something breaks on the way,
// everything stays as it was.
import type { Mark, ReadSettled, RebuildCounts } from "../usage-records/index.ts";
import type { Client, QueryResult } from "./client.ts";
import { usageIdPattern } from "./select.ts";
import { setAllFrom, valuesOf } from "./tables.ts";

/** Enough to compare a hundred million records. */
const LONG_MS = 3_600_000;

/**
 * The record of a request's own process stays where the spend log is older, and only says
 * "interrupted".
 */
const STAYS = "settled.status = 'interrupted' AND usage_records.status <> 'interrupted'";

const STEPS = {
  prepare: "CREATE TEMP TABLE settled (LIKE usage_records INCLUDING INDEXES) ON COMMIT DROP",
  collect: `INSERT INTO settled SELECT * FROM jsonb_populate_recordset(NULL::usage_records, $1)
    ON CONFLICT (usage_id) DO UPDATE ${setAllFrom("excluded")}
    WHERE settled.status = 'interrupted' AND excluded.status <> 'interrupted'`,
  analyze: "ANALYZE settled",
  change: `UPDATE usage_records ${setAllFrom("settled")} FROM settled
    WHERE usage_records.usage_id = settled.usage_id
      AND (${valuesOf("usage_records")}) IS DISTINCT FROM (${valuesOf("settled")})
      AND NOT (${STAYS})`,
  add: "INSERT INTO usage_records SELECT * FROM settled ON CONFLICT (usage_id) DO NOTHING",
  count: `SELECT count(*) FILTER (WHERE settled.usage_id IS NULL OR ${STAYS}) AS left_alone,
      (SELECT count(*) FROM settled) AS settled,
      count(*) FILTER (WHERE ${STAYS}) AS stays
    FROM usage_records LEFT JOIN settled USING (usage_id)
    WHERE usage_records.usage_id LIKE $1 OR settled.usage_id IS NOT NULL`,
  dropCursor: "DELETE FROM usage_cursor WHERE source = $1",
  dropMarks: "DELETE FROM usage_marks WHERE source = $1",
  marks: `INSERT INTO usage_marks (source, identity, position, tail, segment, recovered)
    SELECT $1, identity, position, tail, segment, recovered
    FROM jsonb_to_recordset($2)
      AS new(identity text, position bigint, tail text, segment text, recovered boolean)`,
} as const;

/** What the table is rebuilt from. */
export interface RebuildSource {
  /** The gateway instance id of the data_dir. */
  readonly source: string;
  /** As UsageStore.rebuild(). */
  readonly readSettled: ReadSettled;
  /** They take the place of all marks of the source. */
  readonly marks: readonly Mark[];
}

/**
 * Rebuilds the records of a source. If it throws, the caller ends the connection, and with it the
 * transaction.
 */
export async function rebuildTable(
  client: Client,
  { source, readSettled, marks }: RebuildSource,
): Promise<RebuildCounts> {
  const run = (text: string, ...values: unknown[]): Promise<QueryResult> =>
    client.query({ text, values, query_timeout: LONG_MS });
  await run("BEGIN");
  await run(STEPS.prepare);
  for await (const records of readSettled()) await run(STEPS.collect, JSON.stringify(records));
  await run(STEPS.analyze);
  const changed = (await run(STEPS.change)).rowCount ?? 0;
  const added = (await run(STEPS.add)).rowCount ?? 0;
  const [counts = {}] = (await run(STEPS.count, usageIdPattern(source))).rows;
  await run(STEPS.dropCursor, source);
  await run(STEPS.dropMarks, source);
  await run(STEPS.marks, source, JSON.stringify(marks));
  await run("COMMIT");
  const unchanged = Number(counts["settled"]) - added - changed - Number(counts["stays"]);
  return { added, changed, removed: 0, unchanged, left: Number(counts["left_alone"]) };
}
