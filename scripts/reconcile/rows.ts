// The rows of usage_records, read from PostgreSQL with a query of our own, as lines of the files
// have them.

const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
];
const count = (name: string): string => `${name}::float8`;
const time = (name: string): string =>
  `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;

/** All columns, in the order in which a record has its members. */
export const ROWS = `SELECT usage_id, gateway_request_id, account, key_id, model, provider, status,
  ${COUNTS.map(count).join(", ")}, cost::text, currency, ${time("started_at")},
  ${time("ended_at")}, ${count("cache_write_tokens")}, day::text, details,
  json_build_object('segment', log_segment, 'line', log_line, 'sha256', log_sha256) AS log
  FROM usage_records`;
