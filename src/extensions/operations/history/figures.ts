// The figures of accounts and models in an interval, read from the growth of a tally. Every map is
// bounded, so a flood of names cannot fill the memory.
import { FAMILIES, OUTCOMES, rowsIn, type Tally } from "../metrics/index.ts";

/** The name of the row that sums up all further names. No account or model can have this name. */
export const OTHER = "\0other";

/** `cost` is in the configuration's currency and rounded: only the books are exact. */
const CHARGE = ["prompt_tokens", "completion_tokens", "cost"] as const;
/** Milliseconds and tokens of streams after their first token. */
const STREAMS = ["stream_ms", "stream_tokens"] as const;

export const ACCOUNT_FIGURES = [...OUTCOMES, ...CHARGE] as const;
/** `faults`: attempts that failed because of the provider. */
export const TOTAL_FIGURES = [...OUTCOMES, "faults", ...STREAMS] as const;
/** `requests`: those that the model served. `attempts` includes `faults`, the failed ones. */
export const MODEL_FIGURES = ["requests", "attempts", "faults", ...CHARGE, ...STREAMS] as const;
/** Prompt tokens found, and not found, in the provider's cache. */
export const CACHE_FIGURES = ["cache_hit", "cache_miss"] as const;

/** A figure named by this prefix and a model counts the requests that the model served. */
export const SERVED = "served by ";

/** Values by the names of figures and buckets. Absent: 0. */
export type Row = Record<string, number>;
export type Rows = Map<string, Row>;

export interface Figures {
  /** By account; "" stands for requests without an authenticated caller. */
  readonly accounts: Rows;
  /** By model. */
  readonly models: Rows;
  /** CACHE_FIGURES and SERVED figures, by the model or alias that clients requested. */
  readonly requested: Rows;
  /** Requests that ended with an error, by account and error code, joined by "\0". */
  readonly refused: Rows;
}

/** The members of Figures. */
export const SECTIONS = ["accounts", "models", "requested", "refused"] as const;

export const noFigures = (): Figures => ({
  accounts: new Map(),
  models: new Map(),
  requested: new Map(),
  refused: new Map(),
});

const FIRST_TOKEN = "gen_ai_server_time_to_first_token_seconds";
/** Upper bounds of the time to the first token, in seconds. A last bucket has no bound. */
const BOUNDS = FAMILIES[FIRST_TOKEN].buckets;
const bucketNames = [...BOUNDS, Infinity].map((bound) => `within ${bound}`);

export function figuresIn(grown: Tally): Figures {
  const { accounts, models, requested, refused } = noFigures();
  for (const [[figure, name], { sum }] of rowsIn(grown, "account"))
    add(accounts, name, figure, sum);
  for (const [[figure, name], { sum }] of rowsIn(grown, "model")) add(models, name, figure, sum);
  const prompts = rowsIn(grown, "chat_gateway_prompt_tokens_total");
  for (const [[name, model, cache], { count, sum }] of prompts) {
    add(requested, name, `cache_${cache}`, sum);
    add(models, model, `cache_${cache}`, sum);
    // Every request has one value for hits and one for misses, though it may be 0 tokens.
    if (cache === "miss") add(requested, name, `${SERVED}${model}`, count);
  }
  for (const [[, name], { sum }] of rowsIn(grown, "chat_gateway_attempts_total"))
    add(models, name, "attempts", sum);
  for (const [[, name, kind], { sum }] of rowsIn(grown, "chat_gateway_upstream_faults_total"))
    if (kind !== "request") add(models, name, "faults", sum);
  for (const [[, name], { count, buckets }] of rowsIn(grown, FIRST_TOKEN)) {
    const above = count - buckets.reduce((sum, values) => sum + values, 0);
    for (const [at, values] of [...buckets, above].entries())
      add(models, name, bucketNames[at], values);
  }
  for (const [[, code, , account], { count }] of rowsIn(grown, "refusal"))
    add(refused, code === undefined ? OTHER : `${account}\0${code}`, "count", count);
  return { accounts, models, requested, refused };
}

const add = (rows: Rows, name = OTHER, figure = "", value: number): Row =>
  addRow(rowOf(rows, name), { [figure]: value });

function rowOf(rows: Rows, name: string): Row {
  const row = rows.get(name) ?? {};
  rows.set(name, row);
  return row;
}

export function addRow(into: Row, from: Row): Row {
  for (const [figure, value] of Object.entries(from)) into[figure] = (into[figure] ?? 0) + value;
  return into;
}

/** Adds rows by name. Names beyond `maxNames` share the row OTHER. */
export function addRows(into: Rows, from: Rows, maxNames: number): void {
  for (const [name, row] of from)
    addRow(rowOf(into, into.has(name) || into.size < maxNames ? name : OTHER), row);
}

/**
 * The sum of all accounts and models. Both count tokens and costs, so these come out doubled and
 * are not among TOTAL_FIGURES.
 */
export const totalOf = ({ accounts, models }: Figures): Row =>
  [...accounts.values(), ...models.values()].reduce<Row>(addRow, {});

/** A row in the answer of GET /history. Buckets become percentiles in seconds; null: no token. */
export function rowToJson<F extends string>(row: Row, figures: readonly F[]) {
  const entries = figures.map((figure) => [figure, rounded(row[figure] ?? 0)]);
  return {
    ...(Object.fromEntries(entries) as Record<F, number>),
    first_token: { p50: percentile(row, 0.5), p95: percentile(row, 0.95) },
  };
}

/** Sums of costs are floating-point numbers: seven digits hide their rounding errors. */
const rounded = (value: number): number =>
  Number.isInteger(value) ? value : Number(value.toPrecision(7));

/** In seconds, interpolated within its bucket; at most the last bound. Null: no values. */
function percentile(row: Row, share: number): number | null {
  const buckets = bucketNames.map((name) => row[name] ?? 0);
  let left = share * buckets.reduce((sum, values) => sum + values, 0);
  if (left === 0) return null;
  for (const [at, high] of BOUNDS.entries()) {
    const values = buckets[at]!;
    const low = BOUNDS[at - 1] ?? 0;
    if (left <= values) return Number((low + (left / values) * (high - low)).toPrecision(3));
    left -= values;
  }
  return BOUNDS.at(-1)!;
}
