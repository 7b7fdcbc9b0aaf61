// UsageStore.commit() in PostgreSQL: records and marks move in one statement, and so in one
// transaction.
import type { Mark, UsageChange } from "../usage-records/index.ts";
import { setAllFrom } from "./tables.ts";

/**
 * $1: records; $2: the source; $3: marks to remove; $4: marks to add; $5: segments whose marks of
 * earlier versions are to be removed. Of two records of a request the one that does not say
 * "interrupted" stays: the request's own process wrote it.
 */
export const COMMIT = `WITH copied AS (
    INSERT INTO usage_records SELECT * FROM jsonb_populate_recordset(NULL::usage_records, $1)
    ON CONFLICT (usage_id) DO UPDATE ${setAllFrom("excluded")}
    WHERE usage_records.status = 'interrupted' AND excluded.status <> 'interrupted'),
  dropped AS (
    DELETE FROM usage_marks
    USING jsonb_to_recordset($3) AS old(identity text, position bigint, tail text)
    WHERE source = $2 AND usage_marks.identity = old.identity
      AND usage_marks.position = old.position AND usage_marks.tail = old.tail),
  adopted AS (DELETE FROM usage_cursor WHERE source = $2 AND segment = ANY ($5))
  INSERT INTO usage_marks (source, identity, position, tail, segment, recovered)
  SELECT $2, identity, position, tail, segment, recovered
  FROM jsonb_to_recordset($4)
    AS new(identity text, position bigint, tail text, segment text, recovered boolean)
  ON CONFLICT (source, identity, position, tail)
    DO UPDATE SET segment = excluded.segment, recovered = excluded.recovered`;

/** The values of COMMIT. */
export function commitValues(source: string, { records, put, drop }: UsageChange): unknown[] {
  const gone = drop.filter((mark) => !put.some((other) => isSameMark(mark, other)));
  const ofEarlierVersions = gone.filter(({ identity }) => identity === null);
  return [
    JSON.stringify(records),
    source,
    JSON.stringify(gone.filter(({ identity }) => identity !== null)),
    JSON.stringify(put),
    ofEarlierVersions.map(({ segment }) => segment),
  ];
}

const isSameMark = (a: Mark, b: Mark): boolean =>
  a.identity === b.identity && a.position === b.position && a.tail === b.tail;
