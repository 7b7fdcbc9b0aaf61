// Which figures are kept of a stretch of time: for the gateway, for each account and for each
// model. A tally is a list of numbers in the order of its names, so that tallies can be added, kept
// in one array, and sent to another process.

/** The outcomes of requests that the console distinguishes. "4xx" is any other than those named. */
export const OUTCOMES = ["ok", "401", "402", "429", "4xx", "5xx", "cancelled"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The figures of an account. Tokens are counts; `cost` is in the configuration's currency. */
export const ACCOUNT_FIGURES = [...OUTCOMES, "prompt_tokens", "completion_tokens", "cost"] as const;
export type AccountFigure = (typeof ACCOUNT_FIGURES)[number];

/** Upper bounds of the times to a first token, in seconds. One more bucket is above them all. */
export const FIRST_TOKEN_BOUNDS = [
  0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2.5, 5, 10, 20, 40,
] as const;
const BUCKETS = FIRST_TOKEN_BOUNDS.length + 1;
const firstTokenNames = Array.from({ length: BUCKETS }, (_, at) => `first_${at}` as const);

/**
 * The figures of a model. `requests` are those that it served, `failed` those of them that broke
 * off; `attempts` were made at it, and `faults` of these failed by the provider's doing. `reply_ms`
 * is the time of all requests; `stream_ms` and `stream_tokens` are those of streams after their
 * first token. `first_N`: times to a first token by bucket.
 */
export const MODEL_FIGURES = [
  "requests",
  "failed",
  "attempts",
  "faults",
  "prompt_tokens",
  "completion_tokens",
  "cost",
  "reply_ms",
  "stream_ms",
  "stream_tokens",
  ...firstTokenNames,
] as const;
export type ModelFigure = (typeof MODEL_FIGURES)[number];

/** The figures of the whole gateway. `in_flight` and `loop_delay` are the highest that was seen. */
export const TOTAL_FIGURES = [
  ...ACCOUNT_FIGURES,
  "faults",
  "stream_ms",
  "stream_tokens",
  ...firstTokenNames,
  "in_flight",
  "loop_delay",
] as const;
export type TotalFigure = (typeof TOTAL_FIGURES)[number];

/** Figures that are combined by their maximum; all others are added. */
const HIGHEST: ReadonlySet<string> = new Set(["in_flight", "loop_delay"]);

export interface FigureSet<F extends string = string> {
  /** In the order in which a tally has them. */
  readonly names: readonly F[];
  /** Where a figure stands in a tally. */
  at(name: F): number;
  /** Whether the highest value of the figure at this place counts; else values are added. */
  isHighest(place: number): boolean;
  /** A tally of zeros. */
  empty(): number[];
}

function figureSet<F extends string>(names: readonly F[]): FigureSet<F> {
  const places = new Map(names.map((name, place) => [name, place]));
  const highest = names.map((name) => HIGHEST.has(name));
  return {
    names,
    at: (name) => places.get(name)!,
    isHighest: (place) => highest[place]!,
    empty: () => Array<number>(names.length).fill(0),
  };
}

export const ACCOUNT = figureSet(ACCOUNT_FIGURES);
export const MODEL = figureSet(MODEL_FIGURES);
export const TOTAL = figureSet(TOTAL_FIGURES);

/** The figure in which a time to a first token is counted. */
export function firstTokenFigure(ms: number): (typeof firstTokenNames)[number] {
  const bucket = FIRST_TOKEN_BOUNDS.findIndex((bound) => ms <= bound * 1000);
  return firstTokenNames[bucket === -1 ? BUCKETS - 1 : bucket]!;
}

/** The figures of the buckets, in their order. */
export const FIRST_TOKEN_FIGURES: readonly (typeof firstTokenNames)[number][] = firstTokenNames;

/** The outcome of a request by the status of its answer. */
export function outcomeOf(status: number): Outcome {
  if (status < 400) return "ok";
  if (status === 401) return "401";
  if (status === 402) return "402";
  if (status === 429) return "429";
  if (status === 499) return "cancelled";
  return status < 500 ? "4xx" : "5xx";
}
