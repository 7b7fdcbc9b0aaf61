// Time as the history keeps it: bins of falling resolution in rings of fixed size. A slice counts
// in one bin of each level. 318 bins in all; a track (tracks.ts) has its figures for each of them.

export interface Level {
  /** How the level is asked for. */
  readonly range: string;
  /** Milliseconds of a bin. */
  readonly step: number;
  /** Bins that are kept. */
  readonly bins: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

export const LEVELS: readonly Level[] = [
  { range: "15m", step: 10 * SECOND, bins: 90 },
  { range: "1h", step: MINUTE, bins: 60 },
  { range: "6h", step: 5 * MINUTE, bins: 72 },
  { range: "24h", step: 15 * MINUTE, bins: 96 },
];

/** The place of each level's first bin among all bins. */
const STARTS = LEVELS.map((_, level) =>
  LEVELS.slice(0, level).reduce((sum, { bins }) => sum + bins, 0),
);

/** How many bins all levels have together. */
export const BIN_COUNT = LEVELS.reduce((sum, { bins }) => sum + bins, 0);

/** A bin of one level. */
export interface Bin {
  /** Its place among all bins. Undefined: nothing was counted in it. */
  readonly place: number | undefined;
  /** When it begins, in milliseconds since 1970. */
  readonly at: number;
}

export interface Timeline {
  /** The places of the bins that a moment belongs to. A level for which it is too old has none. */
  placesFor(time: number): readonly number[];
  /** The bins of a level up to a moment, the oldest first. */
  bins(level: number, until: number): readonly Bin[];
}

/** `clear` empties a place that is used again for another bin. */
export function createTimeline(clear: (place: number) => void): Timeline {
  /** The number of the bin that stands at each place, counted from 1970. NaN: none. */
  const numbers = new Float64Array(BIN_COUNT).fill(Number.NaN);
  let newest = -Infinity;

  const numberOf = (level: number, time: number): number => Math.floor(time / LEVELS[level]!.step);
  const placeOf = (level: number, number: number): number =>
    STARTS[level]! + (number % LEVELS[level]!.bins);

  function placeFor(level: number, time: number): number | undefined {
    const number = numberOf(level, time);
    if (number <= numberOf(level, newest) - LEVELS[level]!.bins) return undefined;
    const place = placeOf(level, number);
    if (numbers[place] !== number) {
      clear(place);
      numbers[place] = number;
    }
    return place;
  }

  /** The wall clock was set back: what lies ahead of it will be counted once more. */
  function forgetAfter(time: number): void {
    for (const level of LEVELS.keys()) {
      const last = numberOf(level, time);
      for (let bin = 0; bin < LEVELS[level]!.bins; bin += 1) {
        const place = STARTS[level]! + bin;
        if (numbers[place]! > last) numbers[place] = Number.NaN;
      }
    }
    newest = time;
  }

  return {
    placesFor(time) {
      const longest = LEVELS.at(-1)!;
      if (time < newest - longest.step * longest.bins) forgetAfter(time);
      newest = Math.max(newest, time);
      return [...LEVELS.keys()]
        .map((level) => placeFor(level, time))
        .filter((place) => place !== undefined);
    },
    bins(level, until) {
      const { bins, step } = LEVELS[level]!;
      const last = numberOf(level, until);
      return Array.from({ length: bins }, (_, index) => {
        const number = last - bins + 1 + index;
        const place = placeOf(level, number);
        return { place: numbers[place] === number ? place : undefined, at: number * step };
      });
    },
  };
}
