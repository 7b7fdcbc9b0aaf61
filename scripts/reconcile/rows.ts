// The rows of usage_records, read from PostgreSQL with a query of our own, as lines of the files
// have them.

import type { Postgres } from "../../test/support/postgres.ts";
import type { Line } from "./house.ts";

const TEXTS = [
  "usage_id",
  "gateway_request_id",
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  "currency",
];
const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
  "cache_write_tokens",
];
const TIME = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

export function readRows(postgres: Postgres, url: string): Promise<Line[]> {
  const times = ["started_at", "ended_at"].map(
    (name) => `to_char(${name} AT TIME ZONE 'UTC', ${TIME}) AS ${name}`,
  );
  const counts = COUNTS.map((name) => `${name}::float8`);
  const columns = [...TEXTS, ...counts, ...times, "cost::text AS cost", "details"];
  return postgres.query(url, `SELECT ${columns.join(", ")} FROM usage_records`);
}
