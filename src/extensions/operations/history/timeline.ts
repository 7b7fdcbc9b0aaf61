// Time as the history keeps it: bins of falling resolution. A slice counts in a bin of each range.
import { addCounts, emptyCounts, OTHER, type Counts } from "./counts.ts";
import {
  ACCOUNT_FIGURES,
  addTally,
  emptyTally,
  MODEL_FIGURES,
  OUTCOMES,
  shown,
  sumOf,
  TOTAL_FIGURES,
  type Figure,
  type Tally,
} from "./figures.ts";

/** Accounts, and models, with rows of their own in the figures of a range. */
const MAX_ROWS = 50;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** By name: how many milliseconds a bin has, and how many bins are kept. */
export const RANGES = {
  "15m": { step: 10 * SECOND, bins: 90 },
  "1h": { step: MINUTE, bins: 60 },
  "6h": { step: 5 * MINUTE, bins: 72 },
  "24h": { step: 15 * MINUTE, bins: 96 },
} as const;

export type RangeName = keyof typeof RANGES;

/** Of what time everything is known, in milliseconds since 1970. */
export interface Known {
  /** When recording began. */
  readonly since: number;
  /** What began before this moment is known. */
  readonly until: number;
}

export function createTimeline() {
  /** By range, and by their numbers counted from 1970. One without events is absent. */
  const kept = new Map(Object.keys(RANGES).map((name) => [name, new Map<number, Counts>()]));

  return {
    /** Counts what happened at `time`, in milliseconds since 1970. */
    add(time: number, counts: Counts): void {
      for (const [name, { step, bins }] of Object.entries(RANGES)) {
        const number = Math.floor(time / step);
        const level = kept.get(name)!;
        const bin = level.get(number) ?? emptyCounts();
        level.set(number, bin);
        addCounts(bin, counts);
        // Those ahead are of a time before the clock was set back.
        for (const other of level.keys()) if (Math.abs(number - other) >= bins) level.delete(other);
      }
    },
    /** The figures of a range that ends at `now`. */
    range: (name: RangeName, now: number, known: Known) =>
      figuresOf(name, kept.get(name)!, now, known),
  };
}

function figuresOf(
  range: RangeName,
  kept: ReadonlyMap<number, Counts>,
  now: number,
  { since, until }: Known,
) {
  const { step, bins: count } = RANGES[range];
  const first = Math.floor(now / step) - count + 1;
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const secondsOf = (number: number): number => {
    const at = number * step;
    return Math.max(0, Math.min(at + step, until) - Math.max(at, since)) / SECOND;
  };
  const sum = emptyCounts();
  for (const number of numbers) addCounts(sum, kept.get(number) ?? emptyCounts(), Infinity);

  return {
    range,
    /** Milliseconds of a bin. */
    step,
    /** When the range begins and ends, in milliseconds since 1970. */
    from: first * step,
    to: now,
    /** When recording began. Before it nothing is known. */
    since,
    /** Seconds of the range for which the data is complete. */
    seconds: numbers.reduce((sum, number) => sum + secondsOf(number), 0),
    /**
     * The oldest first. Null: nothing is known of that time. `seconds`: those of which everything
     * is known; less than `step`: the bin is not over, or the gateway began in it.
     */
    bins: numbers.map((number) => {
      const seconds = secondsOf(number);
      const tally = kept.get(number)?.total ?? emptyTally();
      return seconds === 0 ? null : { at: number * step, seconds, ...shown(tally, TOTAL_FIGURES) };
    }),
    /** The whole range as one. */
    total: shown(sum.total, TOTAL_FIGURES),
    /** Null: the caller was not authenticated. */
    accounts: busiest(sum.accounts, OUTCOMES).map(([account, tally]) => ({
      account: account === "" ? null : account,
      other: account === OTHER,
      ...shown(tally, ACCOUNT_FIGURES),
    })),
    models: busiest(sum.models, ["attempts"]).map(([model, tally]) => ({
      model,
      other: model === OTHER,
      ...shown(tally, MODEL_FIGURES),
    })),
  };
}

/** The tallies of those with most of these figures, and one of all others together. */
function busiest(
  tallies: ReadonlyMap<string, Tally>,
  figures: readonly Figure[],
): readonly (readonly [string, Tally])[] {
  const ranked = [...tallies]
    .filter(([name]) => name !== OTHER)
    .sort(([, one], [, other]) => sumOf(other, figures) - sumOf(one, figures));
  const other = tallies.get(OTHER);
  const others = [...(other ? [other] : []), ...ranked.slice(MAX_ROWS).map(([, tally]) => tally)];
  const [first, ...more] = others;
  if (!first) return ranked;
  for (const tally of more) addTally(first, tally);
  return [...ranked.slice(0, MAX_ROWS), [OTHER, first]];
}
