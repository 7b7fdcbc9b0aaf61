// What changes the tables. Records and the cursor of a data_dir move in one statement, and so in
// one transaction.
import type { UsageRecord } from "../records/index.ts";
import type { Rows } from "./client.ts";
import type { Database } from "./pool.ts";
import { SET_ALL } from "./tables.ts";

/** Enough to put a day of a hundred million records in place. */
const LONG_MS = 3_600_000;

/** Sets the cursor alone. $1: the source; $2: the place; $3: the cursor. */
export const SET_CURSOR = `INSERT INTO usage_cursors (source, place, moved_at, cursor)
  VALUES ($1, $2, clock_timestamp(), $3)
  ON CONFLICT (source) DO UPDATE SET place = excluded.place, moved_at = excluded.moved_at,
    cursor = excluded.cursor`;

/** The same, and adds records. $4: rowsOf() the records. */
export const ADD = `WITH moved AS (${SET_CURSOR})
  INSERT INTO usage_records SELECT * FROM json_populate_recordset(NULL::usage_records, $4)`;

const DELETE_DAY = "DELETE FROM usage_records WHERE day = $1 AND usage_id LIKE $2";

/** A record that somebody has moved to another day is moved back. $1: rowsOf() the records. */
const PUT = `INSERT INTO usage_records
  SELECT * FROM json_populate_recordset(NULL::usage_records, $1)
  ON CONFLICT (usage_id) DO UPDATE ${SET_ALL}`;

/** Records as rows of the table, in JSON. */
export const rowsOf = (records: readonly UsageRecord[]): string =>
  JSON.stringify(
    records.map(({ log, ...columns }) => ({
      ...columns,
      log_segment: log?.segment,
      log_line: log?.line,
      log_sha256: log?.sha256,
    })),
  );

/** Puts records in the place of all those of a day whose usage_ids match `ownIds`: all or none. */
export async function replaceDay(
  database: Database,
  day: string,
  ownIds: string,
  records: AsyncIterable<readonly UsageRecord[]>,
): Promise<void> {
  const client = await database.connect();
  const run = (text: string, ...values: unknown[]): Promise<{ readonly rows: Rows }> =>
    client.query({ text, values, query_timeout: LONG_MS });
  try {
    await run("BEGIN");
    await run(DELETE_DAY, day, ownIds);
    for await (const batch of records) await run(PUT, rowsOf(batch));
    await run("COMMIT");
  } finally {
    // Without a COMMIT nothing has changed.
    client.release(true);
  }
}
