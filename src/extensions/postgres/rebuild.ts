// `books rebuild` in PostgreSQL: what the spend log says goes into a temporary table, which is then compared with the records, all in
// one transaction. What breaks on the way leaves everything as it was.
import type { Client } from "./client.ts";
import type { UsageRecord } from "../books/records.ts";
import type { RebuildCounts } from "../books/usage-store.ts";
import type { Mark } from "../books/segments.ts";
import tables from "./usage-tables.json" with { type: "json" };

const LONG_MS = 3_600_000; // of a comparison of a hundred million records
const NAMES = Object.keys(tables.columns);
const columnsOf = (table: string): string => NAMES.map((name) => `${table}.${name}`).join(", ");
const REPLACE = `SET (${NAMES.join(", ")}) = (${columnsOf("excluded")})`;
/** A record whose own process wrote it stays, where the spend log is older than it and only says "interrupted". */
const STAYS = "settled.status = 'interrupted' AND usage_records.status <> 'interrupted'";

const STEPS = {
  collect: `INSERT INTO settled SELECT * FROM jsonb_populate_recordset(NULL::usage_records, $1)
    ON CONFLICT (usage_id) DO UPDATE ${REPLACE} WHERE settled.status = 'interrupted' AND excluded.status <> 'interrupted'`,
  change: `UPDATE usage_records SET (${NAMES.join(", ")}) = (${columnsOf("settled")}) FROM settled
    WHERE usage_records.usage_id = settled.usage_id AND (${columnsOf("usage_records")}) IS DISTINCT FROM (${columnsOf("settled")})
    AND NOT (${STAYS})`,
  add: "INSERT INTO usage_records SELECT * FROM settled ON CONFLICT (usage_id) DO NOTHING",
  count: `SELECT count(*) FILTER (WHERE settled.usage_id IS NULL OR ${STAYS}) AS left_alone, (SELECT count(*) FROM settled) AS settled
    FROM usage_records LEFT JOIN settled USING (usage_id) WHERE usage_records.usage_id LIKE $1 OR settled.usage_id IS NOT NULL`,
  marks: `INSERT INTO usage_marks (source, identity, position, tail, segment, recovered)
    SELECT $1, identity, position, tail, segment, recovered
    FROM jsonb_to_recordset($2) AS new(identity text, position bigint, tail text, segment text, recovered boolean)`,
} as const;

export async function rebuildTable(
  client: Client,
  {
    settled,
    marks,
    source,
  }: {
    readonly settled: () => AsyncIterable<readonly UsageRecord[]>;
    readonly marks: readonly Mark[];
    readonly source: string;
  },
): Promise<RebuildCounts> {
  const run = (text: string, ...values: unknown[]) =>
    client.query({ text, values, query_timeout: LONG_MS });
  await run("BEGIN");
  await run("CREATE TEMP TABLE settled (LIKE usage_records INCLUDING INDEXES) ON COMMIT DROP");
  for await (const records of settled()) await run(STEPS.collect, JSON.stringify(records));
  await run("ANALYZE settled");
  const { rowCount: changed } = await run(STEPS.change);
  const { rowCount: added } = await run(STEPS.add);
  const { rows } = await run(STEPS.count, `sp_${source.slice(0, 8)}%`);
  const { left_alone, settled: total } = rows[0] ?? {};
  const { rows: stays } = await run(
    `SELECT count(*) AS n FROM usage_records JOIN settled USING (usage_id) WHERE ${STAYS}`,
  );
  await run("DELETE FROM usage_cursor WHERE source = $1", source);
  await run("DELETE FROM usage_marks WHERE source = $1", source);
  await run(STEPS.marks, source, JSON.stringify(marks));
  await run("COMMIT");
  const counts = { added: added ?? 0, changed: changed ?? 0 };
  const unchanged = Number(total) - counts.added - counts.changed - Number(stays[0]?.["n"] ?? 0);
  return { ...counts, removed: 0, unchanged, left: Number(left_alone) };
}
