// The report on a range of time: its bins, and the sums of accounts and models in it.
import type { ModelFault } from "./contracts.ts";
import type { Faults } from "./faults.ts";
import {
  ACCOUNT,
  FIRST_TOKEN_BOUNDS,
  FIRST_TOKEN_FIGURES,
  MODEL,
  TOTAL,
  type AccountFigure,
  type FigureSet,
  type ModelFigure,
  type TotalFigure,
} from "./figures.ts";
import type { Episode, KeyUse, KeyUses, Refusals } from "./refusals.ts";
import { OTHER } from "./tallies.ts";
import { LEVELS, type Timeline } from "./timeline.ts";
import type { Track, Tracks } from "./tracks.ts";

/** Figures that are shown as they are: those of the buckets become percentiles. */
type Plain<F extends string> = Exclude<F, `first_${number}`>;

/** Times to a first token, in seconds. Null: there was none. */
export interface FirstToken {
  /** Half of them were no longer than this. */
  readonly p50: number | null;
  /** All but one in twenty were no longer than this. */
  readonly p95: number | null;
}

/** One bin. */
export interface BinFigures extends Readonly<Record<Plain<TotalFigure>, number>> {
  /** When it begins, in milliseconds since 1970. */
  readonly at: number;
  /**
   * Seconds of it of which everything is known. Less than `step`: it is incomplete, because it is
   * not over or the gateway began in it.
   */
  readonly seconds: number;
  /** Of the requests of this bin. */
  readonly first_token: FirstToken;
}

export interface AccountFigures extends Readonly<Record<AccountFigure, number>> {
  /** Null: the caller was not authenticated. */
  readonly account: string | null;
  /** It stands for all accounts that have no row of their own. */
  readonly other: boolean;
}

export interface ModelFigures extends Readonly<Record<Plain<ModelFigure>, number>> {
  /** Its canonical name; OTHER where `other` is true. */
  readonly model: string;
  /** It stands for all models that have no row of their own. */
  readonly other: boolean;
  /** Of the requests that it served. */
  readonly first_token: FirstToken;
}

/** The report on a range. */
export interface RangeFigures {
  /** Its name in LEVELS, such as `1h`. */
  readonly range: string;
  /** Milliseconds of a bin. */
  readonly step: number;
  /** When the range begins and ends, in milliseconds since 1970. */
  readonly from: number;
  /** The moment of the question. */
  readonly to: number;
  /** When recording began, in milliseconds since 1970. Before it nothing is known. */
  readonly since: number;
  /** Seconds of the range for which the data is complete. */
  readonly seconds: number;
  /** The oldest first. Null: nothing is known of that time. */
  readonly bins: readonly (BinFigures | null)[];
  /** The whole range as one. */
  readonly total: Readonly<Record<Plain<TotalFigure>, number>> & {
    readonly first_token: FirstToken;
  };
  /** Those with any data in the range. */
  readonly accounts: readonly AccountFigures[];
  /** Those with any data in the range. */
  readonly models: readonly ModelFigures[];
  /**
   * Refusals of the range. An episode that is not over is reported whole, also from before the
   * range.
   */
  readonly refusals: readonly Episode[];
  /** The last fault of each model since the start. */
  readonly faults: readonly ModelFault[];
  /** The use of keys since the start. */
  readonly keys: readonly KeyUse[];
}

/** Where the figures of a range come from. */
export interface RangeSources {
  /** Its index in LEVELS. */
  readonly level: number;
  /** Where the range ends, in milliseconds since 1970. */
  readonly now: number;
  /** As RangeFigures.since, of all processes. */
  readonly since: number;
  /** What began before this moment is known, in milliseconds since 1970. */
  readonly completeUntil: number;
  /** Says which bins lie in the range, and at which places the tracks have them. */
  readonly timeline: Timeline;
  /** The figures of the whole gateway, by TOTAL. */
  readonly total: Track;
  /** By ACCOUNT. */
  readonly accounts: Tracks;
  /** By MODEL. */
  readonly models: Tracks;
  /** All episodes that are kept, of which the range has some. */
  readonly refusals: Refusals;
  /** RangeFigures has all of them, whatever the range is. */
  readonly keys: KeyUses;
  /** RangeFigures has all of them, whatever the range is. */
  readonly faults: Faults;
}

export function rangeOf(sources: RangeSources): RangeFigures {
  const { level, now, since, completeUntil, timeline, total } = sources;
  const { range, step } = LEVELS[level]!;
  const bins = timeline.bins(level, now);
  const places = bins.flatMap(({ place }) => (place === undefined ? [] : [place]));
  const from = bins[0]!.at;
  const known = (at: number): number =>
    Math.max(0, Math.min(at + step, completeUntil) - Math.max(at, since)) / 1000;

  return {
    range,
    step,
    from,
    to: now,
    since,
    seconds: bins.reduce((sum, { at }) => sum + known(at), 0),
    bins: bins.map(({ place, at }) => {
      const seconds = known(at);
      if (seconds === 0) return null;
      const tally = place === undefined ? TOTAL.empty() : total.sum([place]);
      return { at, seconds, ...named(TOTAL, tally) };
    }),
    total: named(TOTAL, total.sum(places)),
    accounts: rowsOf(sources.accounts, ACCOUNT, places).map(([account, row]) => ({
      account: account === "" ? null : account,
      other: account === OTHER,
      ...row,
    })),
    models: rowsOf(sources.models, MODEL, places).map(([model, row]) => ({
      model,
      other: model === OTHER,
      ...row,
    })),
    refusals: sources.refusals.since(from),
    faults: sources.faults.all(),
    keys: sources.keys.all(),
  };
}

/**
 * The tracks with anything in the range. A member distinguishes the row of all others from a name.
 */
function rowsOf<F extends string>(
  tracks: Tracks,
  figures: FigureSet<F>,
  places: readonly number[],
) {
  const rows: (readonly [string, ReturnType<typeof named<F>>])[] = [];
  for (const [name, track] of tracks.entries()) {
    const tally = track.sum(places);
    if (tally.some((value) => value > 0)) rows.push([name, named(figures, tally)]);
  }
  return rows;
}

/** A tally as an object, the buckets as percentiles. */
function named<F extends string>(figures: FigureSet<F>, tally: readonly number[]) {
  const row: Record<string, number> = {};
  for (const [place, name] of figures.names.entries())
    if (!name.startsWith("first_")) row[name] = rounded(tally[place]!);
  return { ...(row as Record<Plain<F>, number>), first_token: firstTokenOf(figures, tally) };
}

/** Seven digits are all that a 32-bit number has. */
const rounded = (value: number): number =>
  Number.isInteger(value) ? value : Number(value.toPrecision(7));

function firstTokenOf(figures: FigureSet, tally: readonly number[]): FirstToken {
  const buckets = FIRST_TOKEN_FIGURES.map((name) => tally[figures.at(name)] ?? 0);
  return { p50: percentile(buckets, 0.5), p95: percentile(buckets, 0.95) };
}

/** In seconds, by the share of the bucket in which it lies. Above the last bound: that bound. */
export function percentile(buckets: readonly number[], share: number): number | null {
  const count = buckets.reduce((sum, bucket) => sum + bucket, 0);
  if (count === 0) return null;
  let left = share * count;
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
