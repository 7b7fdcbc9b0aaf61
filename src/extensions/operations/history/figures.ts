// Which figures are kept of a stretch of time: of the gateway, of each account and of each model. A
// tally is a list of numbers, so that tallies can be added and sent to another process.

/** The outcomes of requests that the console distinguishes. "4xx" is any other than those named. */
export const OUTCOMES = ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Tokens are counts; `cost` is in the configuration's currency, and for looking at only. */
const CHARGE = ["prompt_tokens", "completion_tokens", "cost"] as const;
/** Milliseconds and tokens of streams after their first token. */
const STREAMS = ["stream_ms", "stream_tokens"] as const;

/** The figures of an account. */
export const ACCOUNT_FIGURES = [...OUTCOMES, ...CHARGE] as const;

/** The figures of the whole gateway. `in_flight` and `loop_delay` are the highest that was seen. */
export const TOTAL_FIGURES = [
  ...ACCOUNT_FIGURES,
  "faults",
  ...STREAMS,
  "in_flight",
  "loop_delay",
] as const;

/**
 * The figures of a model. `requests` are those that it served, `failed` those of them that broke
 * off; `attempts` were made at it, and `faults` of these failed by the provider's doing. `reply_ms`
 * is the time of all requests.
 */
export const MODEL_FIGURES = [
  "requests",
  "failed",
  "attempts",
  "faults",
  ...CHARGE,
  "reply_ms",
  ...STREAMS,
] as const;

export type Figure = (typeof TOTAL_FIGURES)[number] | (typeof MODEL_FIGURES)[number];

/** Those of an account stand first, so that its tallies need not have the others. */
const FIGURES: readonly Figure[] = [...new Set([...TOTAL_FIGURES, ...MODEL_FIGURES])];
const PLACES = new Map(FIGURES.map((figure, place) => [figure, place]));
const placeOf = (figure: Figure): number => PLACES.get(figure)!;
/** Figures that are combined by their maximum; all others are added. */
const HIGHEST = FIGURES.map((figure) => figure === "in_flight" || figure === "loop_delay");

/** Upper bounds of the times to a first token, in seconds. One more bucket is above them all. */
const FIRST_TOKEN_BOUNDS = [
  0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40,
] as const;

/** By place: the figures, and behind them the buckets of the times to a first token. */
export type Tally = number[];

export const emptyTally = (): Tally =>
  Array<number>(FIGURES.length + FIRST_TOKEN_BOUNDS.length + 1).fill(0);

/** A tally that can have the figures of an account only. */
export const emptyAccountTally = (): Tally => Array<number>(ACCOUNT_FIGURES.length).fill(0);

/** Counts in several tallies. */
export function count(tallies: readonly Tally[], figure: Figure, value = 1): void {
  for (const tally of tallies) tally[placeOf(figure)]! += value;
}

export function countFirstToken(tallies: readonly Tally[], ms: number): void {
  const bucket = FIRST_TOKEN_BOUNDS.findIndex((bound) => ms <= bound * 1000);
  const place = FIGURES.length + (bucket === -1 ? FIRST_TOKEN_BOUNDS.length : bucket);
  for (const tally of tallies) tally[place]! += 1;
}

export const sumOf = (tally: Tally, figures: readonly Figure[]): number =>
  figures.reduce((sum, figure) => sum + tally[placeOf(figure)]!, 0);

export function addTally(into: Tally, from: Tally): void {
  for (let place = 0; place < from.length; place += 1) {
    const [before, value] = [into[place]!, from[place]!];
    into[place] = HIGHEST[place] ? Math.max(before, value) : before + value;
  }
}

/** A tally as it is shown: the buckets are percentiles, in seconds; null: there was no token. */
export function shown<F extends Figure>(tally: Tally, figures: readonly F[]) {
  const entries = figures.map((figure) => [figure, rounded(tally[placeOf(figure)]!)]);
  const buckets = tally.slice(FIGURES.length);
  return {
    ...(Object.fromEntries(entries) as Record<F, number>),
    first_token: { p50: percentile(buckets, 0.5), p95: percentile(buckets, 0.95) },
  };
}

/** Sums of amounts of money have digits that mean nothing. */
const rounded = (value: number): number =>
  Number.isInteger(value) ? value : Number(value.toPrecision(7));

/** By the share of the bucket in which it lies. Above the last bound: that bound. */
function percentile(buckets: readonly number[], share: number): number | null {
  const total = buckets.reduce((sum, bucket) => sum + bucket, 0);
  if (total === 0) return null;
  let left = share * total;
  for (const [at, bucket] of buckets.entries()) {
    if (left > bucket) {
      left -= bucket;
      continue;
    }
    const low = FIRST_TOKEN_BOUNDS[at - 1] ?? 0;
    const high = FIRST_TOKEN_BOUNDS[at] ?? low;
    return Number((low + (left / bucket) * (high - low)).toPrecision(3));
  }
  return FIRST_TOKEN_BOUNDS.at(-1)!;
}
