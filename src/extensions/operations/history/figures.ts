// The figures of accounts and models in a stretch of time, read from what a tally has grown by.
// Every map is bounded, so that no flood of names fills the memory.
import { FAMILIES, OUTCOMES, rowsIn, type Tally } from "../metrics/index.ts";

/** The name of the row of all that have none of their own. No account or model has it. */
export const OTHER = "\0other";

/** Tokens are counts; `cost` is in the configuration's currency, and for looking at only. */
const CHARGE = ["prompt_tokens", "completion_tokens", "cost"] as const;
/** Milliseconds and tokens of streams after their first token. */
const STREAMS = ["stream_ms", "stream_tokens"] as const;

export const ACCOUNT_FIGURES = [...OUTCOMES, ...CHARGE] as const;
/** `faults`: attempts that failed by a provider's doing. */
export const TOTAL_FIGURES = [...OUTCOMES, "faults", ...STREAMS] as const;
/** `requests`: those that it served. `attempts` were made at it, `faults` are some of these. */
export const MODEL_FIGURES = ["requests", "attempts", "faults", ...CHARGE, ...STREAMS] as const;
/** Tokens of prompts that the provider's cache had, and those that it had not. */
export const CACHE_FIGURES = ["cache_hit", "cache_miss"] as const;

/** Before the name of a model: how many requests it served. */
export const SERVED = "served by ";

/** By the names of figures and of buckets. An absent one is 0. */
export type Row = Record<string, number>;
export type Rows = Map<string, Row>;

export interface Figures {
  /** By account; "" stands for requests without an authenticated caller. */
  readonly accounts: Rows;
  /** By model. */
  readonly models: Rows;
  /**
   * CACHE_FIGURES, and SERVED by each model, by the names that clients asked for, those of aliases
   * among them.
   */
  readonly requested: Rows;
  /** How often requests ended with an error: by account and error code, with "\0" between them. */
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
/** Upper bounds of the times to a first token, in seconds. One more bucket is above them all. */
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
    // A request counts once as a hit and once as a miss, each perhaps with no token.
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

/** Names beyond `maxNames` are added in one row. */
export function addRows(into: Rows, from: Rows, maxNames: number): void {
  for (const [name, row] of from)
    addRow(rowOf(into, into.has(name) || into.size < maxNames ? name : OTHER), row);
}

/**
 * The figures of all accounts and models together. Tokens and costs are of both, so they are not
 * among TOTAL_FIGURES.
 */
export const totalOf = ({ accounts, models }: Figures): Row =>
  [...accounts.values(), ...models.values()].reduce<Row>(addRow, {});

/** A row as it is shown: the buckets are percentiles, in seconds; null: there was no token. */
export function shown<F extends string>(row: Row, figures: readonly F[]) {
  const entries = figures.map((figure) => [figure, rounded(row[figure] ?? 0)]);
  return {
    ...(Object.fromEntries(entries) as Record<F, number>),
    first_token: { p50: percentile(row, 0.5), p95: percentile(row, 0.95) },
  };
}

/** Sums of amounts of money have digits that mean nothing. */
const rounded = (value: number): number =>
  Number.isInteger(value) ? value : Number(value.toPrecision(7));

/** By the share of the bucket in which it lies. Above the last bound: that bound. */
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
