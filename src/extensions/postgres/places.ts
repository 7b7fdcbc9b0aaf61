// Notices that two copies of one data_dir write into the same database with the same gateway
// instance id.
import type { StoreFault } from "../usage-records/index.ts";

/**
 * Notes that this place ($2) of a source ($1) is at work with its data_dir ($3). Returns the
 * data_dirs of other places that were at work at the same time within the last hour. A data_dir
 * that was moved, or restored elsewhere, is at work in one place after the other.
 */
export const NOTE_PLACE = `WITH mine AS (
    INSERT INTO usage_sources AS mine VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp())
    ON CONFLICT (source, place) DO UPDATE SET data_dir = excluded.data_dir,
      seen_at = clock_timestamp(),
      began_at = CASE WHEN mine.seen_at < now() - interval '1 hour'
        THEN clock_timestamp() ELSE mine.began_at END
    RETURNING began_at),
  forgotten AS (
    DELETE FROM usage_sources
    WHERE source = $1 AND place <> $2 AND seen_at < now() - interval '7 days')
  SELECT data_dir FROM usage_sources, mine
  WHERE source = $1 AND place <> $2 AND seen_at > mine.began_at
    AND seen_at > now() - interval '1 hour'
  ORDER BY seen_at DESC`;

/** The fault of a data_dir whose copy is at work too. `dataDir` is that of the copy. */
export const clonedFault = (dataDir: string): StoreFault => ({
  event: "gateway_cloned",
  detail:
    `another copy of this data_dir (it calls itself ${dataDir}) writes into the same database ` +
    "with the same gateway-id. Nothing is lost by it, but no audit can tell whose records are " +
    'whose: stop the copy, and read "chat-gateway help backup" before it runs again',
  blocks: false,
});
