// The rows of usage_records, read from PostgreSQL with a query of our own, as lines of the files
// have them.

/** The columns that bills show, in their order. */
export const USAGE_COLUMNS = [
  "usage_id",
  "gateway_request_id",
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
  "cost",
  "currency",
  "started_at",
  "ended_at",
  "cache_write_tokens",
] as const;

const columns = USAGE_COLUMNS.map((name) => {
  if (name === "cost") return "cost::text";
  if (name.endsWith("_at"))
    return `to_char(${name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${name}`;
  return name.endsWith("_tokens") ? `${name}::float8` : name;
});

/** All columns, in the order in which a record has its members. */
export const ROWS = `SELECT ${columns.join(", ")}, day::text, details,
  json_build_object('segment', log_segment, 'line', log_line, 'sha256', log_sha256) AS log
  FROM usage_records`;
