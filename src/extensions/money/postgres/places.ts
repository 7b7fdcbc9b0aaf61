// Notices that two copies of one data_dir write into the same database with the same gateway
// instance id.
import type { StoreFault } from "../records/index.ts";

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

/**
 * The cursor of a source ($1), and whether another place than this ($2) has moved it since this one
 * has been at work: it then says how far a copy of the spend log was copied.
 */
export const CURSOR = `SELECT cursor,
    coalesce(cursors.place <> $2 AND moved_at > began_at, false) AS is_of_copy
  FROM usage_cursors AS cursors
  LEFT JOIN usage_sources AS mine ON mine.source = cursors.source AND mine.place = $2
  WHERE cursors.source = $1`;

/** What the operator reads if the cursor is that of a copy. */
export const COPIED_ELSEWHERE =
  "a copy of this data_dir has written into the same database with the same gateway-id: stop the " +
  "copy, run 'books rebuild' where the original is, and read \"chat-gateway help backup\" before " +
  "the copy runs again";

/** The fault of a data_dir whose copy is at work too. `dataDir` is that of the copy. */
export const clonedFault = (dataDir: string): StoreFault => ({
  event: "gateway_cloned",
  detail:
    `another copy of this data_dir (it calls itself ${dataDir}) writes into the same database ` +
    "with the same gateway-id: stop the copy, and read " +
    '"chat-gateway help backup" before it runs again',
  blocks: false,
});
