// The timeline of the history: for each range, bins of equal length; the longer the range, the
// longer the bins. Each interval between two collections of reports is in one bin of each range.
// Its figures of accounts and models are read from the growth of a tally. Every map is bounded, so
// a flood of names cannot fill the memory.
import { FAMILIES, OUTCOMES, rowsIn, type Tally } from "../metrics/index.ts";

/** The name of the row that sums up all further names. No account or model can have this name. */
const OTHER = "\0other";

/** `cost` is in the configuration's currency and rounded: only the books are exact. */
const CHARGE = ["prompt_tokens", "completion_tokens", "cost"] as const;
/** Milliseconds and tokens of streams after their first token. */
const STREAMS = ["stream_ms", "stream_tokens"] as const;

const ACCOUNT_FIGURES = [...OUTCOMES, ...CHARGE] as const;
/** `faults`: attempts that failed because of the provider. */
const TOTAL_FIGURES = [...OUTCOMES, "faults", ...STREAMS] as const;
/** `requests`: those that the model served. `attempts` includes `faults`, the failed ones. */
const MODEL_FIGURES = ["requests", "attempts", "faults", ...CHARGE, ...STREAMS] as const;
/** Prompt tokens found, and not found, in the provider's cache. */
const CACHE_FIGURES = ["cache_hit", "cache_miss"] as const;

/** A figure named by this prefix and a model counts the requests that the model served. */
const SERVED = "served by ";

/** Values by the names of figures and buckets. Absent: 0. */
type Row = Record<string, number>;
type Rows = Map<string, Row>;

interface Figures {
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
const SECTIONS = ["accounts", "models", "requested", "refused"] as const;

const noFigures = (): Figures => ({
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

function addRow(into: Row, from: Row): Row {
  for (const [figure, value] of Object.entries(from)) into[figure] = (into[figure] ?? 0) + value;
  return into;
}

/** Adds rows by name. Names beyond `maxNames` share the row OTHER. */
function addRows(into: Rows, from: Rows, maxNames: number): void {
  for (const [name, row] of from)
    addRow(rowOf(into, into.has(name) || into.size < maxNames ? name : OTHER), row);
}

/**
 * The sum of all accounts and models. Both count tokens and costs, so these come out doubled and
 * are not among TOTAL_FIGURES.
 */
const totalOf = ({ accounts, models }: Figures): Row =>
  [...accounts.values(), ...models.values()].reduce<Row>(addRow, {});

/** A row in the answer of GET /history. Buckets become percentiles in seconds; null: no token. */
function rowToJson<F extends string>(row: Row, figures: readonly F[]) {
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

/** The most rows in each section of a bin. Names get rows as they appear: busy ones do so early. */
const MAX_NAMES = 100;
/** The most rows in each section of a range's figures. */
const MAX_ROWS = 50;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** The ranges by name. `step`: the length of a bin in milliseconds. `bins`: how many there are. */
export const RANGES = {
  "15m": { step: 10 * SECOND, bins: 90 },
  "1h": { step: MINUTE, bins: 60 },
  "6h": { step: 5 * MINUTE, bins: 72 },
  "24h": { step: 15 * MINUTE, bins: 96 },
} as const;

export type RangeName = keyof typeof RANGES;

/** The figures of one interval between two collections of reports, or of several. */
interface Bin extends Figures {
  /** Seconds with complete figures. */
  seconds: number;
  /** The most requests in flight at any collection, in all processes together. */
  inFlight: number;
}

const emptyBin = (): Bin => ({ ...noFigures(), seconds: 0, inFlight: 0 });

/** Adds `from` to `into`. `maxNames`: the most names of a section with rows of their own. */
function addBin(into: Bin, from: Bin, maxNames: number): void {
  into.seconds += from.seconds;
  into.inFlight = Math.max(into.inFlight, from.inFlight);
  for (const section of SECTIONS) addRows(into[section], from[section], maxNames);
}

/** Collections are some milliseconds early or late: rounding makes a full bin 10.0 seconds. */
const wholeTenths = (seconds: number): number => Number(seconds.toFixed(1));

export function createTimeline() {
  /** Bins by range, and by their numbers counted from 1970. */
  const kept = new Map(Object.keys(RANGES).map((name) => [name, new Map<number, Bin>()]));

  return {
    /** Adds an interval. `at`: its middle, in milliseconds since 1970. */
    add(at: number, interval: Bin): void {
      for (const [name, { step, bins }] of Object.entries(RANGES)) {
        const number = Math.floor(at / step);
        const level = kept.get(name)!;
        const bin = level.get(number) ?? emptyBin();
        level.set(number, bin);
        addBin(bin, interval, MAX_NAMES);
        // Bins in the future were filled before the clock was set back: drop distant ones, too.
        for (const other of level.keys()) if (Math.abs(number - other) >= bins) level.delete(other);
      }
    },
    /** The figures of a range that ends at `now`. */
    range: (name: RangeName, now: number) => figuresOf(name, kept.get(name)!, now),
  };
}

function figuresOf(range: RangeName, kept: ReadonlyMap<number, Bin>, now: number) {
  const { step, bins: count } = RANGES[range];
  const first = Math.floor(now / step) - count + 1;
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const sum = emptyBin();
  const bins = numbers.map((number) => kept.get(number) ?? emptyBin());
  for (const bin of bins) addBin(sum, bin, Infinity);
  return {
    range,
    /** Milliseconds of a bin. */
    step,
    /** When the range begins and ends, in milliseconds since 1970. */
    from: first * step,
    to: now,
    /** Seconds of the range for which the data is complete. */
    seconds: wholeTenths(sum.seconds),
    /** The bins, oldest first. Null: nothing is known of that time. */
    bins: bins.map((bin, index) => {
      const seconds = wholeTenths(bin.seconds);
      if (seconds === 0) return null;
      const total = rowToJson(totalOf(bin), TOTAL_FIGURES);
      return { at: (first + index) * step, seconds, in_flight: bin.inFlight, ...total };
    }),
    /** The figures of the whole range. */
    total: { in_flight: sum.inFlight, ...rowToJson(totalOf(sum), TOTAL_FIGURES) },
    /** Null: the caller was not authenticated. */
    accounts: busiest(sum.accounts, OUTCOMES).map(({ name, other, row }) => ({
      account: name === "" ? null : name,
      other,
      ...rowToJson(row, ACCOUNT_FIGURES),
    })),
    models: busiest(sum.models, ["attempts"]).map(({ name, other, row }) => ({
      model: name,
      other,
      ...rowToJson(row, [...MODEL_FIGURES, ...CACHE_FIGURES]),
    })),
    /** By the name that clients requested: a model or an alias. */
    requested: busiest(sum.requested, CACHE_FIGURES).map(({ name, other, row }) => ({
      name,
      other,
      cache_hit: row["cache_hit"] ?? 0,
      cache_miss: row["cache_miss"] ?? 0,
      /** How many of its requests each model served. */
      served: Object.fromEntries(
        Object.entries(row).flatMap(([figure, count]) =>
          figure.startsWith(SERVED) ? [[figure.slice(SERVED.length), count]] : [],
        ),
      ),
    })),
    /** How often requests of an account ended with an error code, the commonest first. */
    refused: busiest(sum.refused, ["count"]).map(({ name, other, row }) => {
      const [account, code] = other ? [] : name.split("\0");
      return { account: account || null, code: code ?? null, other, count: row["count"] ?? 0 };
    }),
  };
}

/** The rows with the highest sum of these figures, and one row that sums up all others. */
function busiest(rows: Rows, figures: readonly string[]) {
  const weight = (row: Row): number => figures.reduce((sum, name) => sum + (row[name] ?? 0), 0);
  const ranked = [...rows]
    .filter(([name]) => name !== OTHER)
    .sort(([, one], [, other]) => weight(other) - weight(one));
  const others = [rows.get(OTHER) ?? {}, ...ranked.slice(MAX_ROWS).map(([, row]) => row)];
  const other = others.reduce<Row>(addRow, {});
  const named = ranked.slice(0, MAX_ROWS).map(([name, row]) => ({ name, row, other: false }));
  const isEmpty = Object.keys(other).length === 0;
  return isEmpty ? named : [...named, { name: OTHER, row: other, other: true }];
}
