// Tallies by name, bounded: what finds no room for a name of its own is counted as "other".
import type { FigureSet } from "./figures.ts";

/** The name under which is counted what has no tally of its own. No account or model has it. */
export const OTHER = "\0other";
/** The most names that a slice counts separately: accounts, models, keys, refusals. */
export const MAX_NAMES = 500;

/** The tally of a name, or that of the others. */
export function tallyOf<T>(map: Map<string, T>, name: string, create: () => T): T {
  const known = map.get(name);
  if (known !== undefined) return known;
  const key = map.size < MAX_NAMES ? name : OTHER;
  const tally = map.get(key) ?? create();
  map.set(key, tally);
  return tally;
}

/** Adds to the figures of a tally by their names. */
export const adder =
  <F extends string>(figures: FigureSet<F>, tally: number[]) =>
  (name: F, value = 1): void => {
    tally[figures.at(name)]! += value;
  };
