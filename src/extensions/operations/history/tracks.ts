// The figures of accounts and of models over time: one track for each of the busiest 50, and one
// for all others together. A track is an array of 32-bit floating-point numbers: counts are exact
// up to 16 million a bin, and sums of money are for looking at, not for bills.
import type { FigureSet } from "./figures.ts";
import { OTHER } from "./tallies.ts";
import { BIN_COUNT } from "./timeline.ts";

/** Names that have a track of their own. */
export const MAX_TRACKS = 50;

/** The figures of one name in all bins. */
export interface Track {
  /** Adds a tally to the bins at these places. */
  add(places: readonly number[], tally: readonly number[]): void;
  /** The tally of the bins at these places together. */
  sum(places: readonly number[]): number[];
  /** Sets the bin at this place to zeros, for another stretch of time. */
  clear(place: number): void;
  /** Adds all figures of another track of the same kind. */
  absorb(other: Track): void;
}

export function createTrack(figures: FigureSet): Track & { readonly values: Float32Array } {
  const width = figures.names.length;
  const values = new Float32Array(BIN_COUNT * width);

  function put(index: number, figure: number, value: number): void {
    const before = values[index]!;
    values[index] = figures.isHighest(figure) ? Math.max(before, value) : before + value;
  }

  return {
    values,
    add(places, tally) {
      for (const place of places)
        for (let figure = 0; figure < width; figure += 1)
          if (tally[figure] !== 0) put(place * width + figure, figure, tally[figure]!);
    },
    sum(places) {
      const tally = figures.empty();
      for (const place of places) {
        for (let figure = 0; figure < width; figure += 1) {
          const value = values[place * width + figure]!;
          const before = tally[figure]!;
          tally[figure] = figures.isHighest(figure) ? Math.max(before, value) : before + value;
        }
      }
      return tally;
    },
    clear(place) {
      values.fill(0, place * width, (place + 1) * width);
    },
    absorb(other) {
      const more = (other as Track & { readonly values: Float32Array }).values;
      for (let index = 0; index < values.length; index += 1)
        put(index, index % width, more[index]!);
    },
  };
}

export interface Tracks {
  /** Counts the tallies of one slice, by their names. */
  add(places: readonly number[], tallies: ReadonlyMap<string, readonly number[]>): void;
  /** The names that have a track, with it. The name OTHER stands for all others. */
  entries(): Iterable<readonly [name: string, track: Track]>;
  /** As Track.clear, in all tracks. */
  clear(place: number): void;
}

/**
 * `busyness`: how much a tally weighs when names compete for a track. `recent`: the places of the
 * bins in which the names that have one are compared.
 */
export function createTracks(
  figures: FigureSet,
  busyness: (tally: readonly number[]) => number,
  recent: () => readonly number[],
): Tracks {
  const tracks = new Map<string, Track>();

  /** The name whose track weighs least of late. */
  function idlest(): { name: string; weight: number } {
    const places = recent();
    let least = { name: "", weight: Infinity };
    for (const [name, track] of tracks) {
      if (name === OTHER) continue;
      const weight = busyness(track.sum(places));
      if (weight < least.weight) least = { name, weight };
    }
    return least;
  }

  function trackOf(name: string): Track {
    const known = tracks.get(name);
    if (known) return known;
    const track = createTrack(figures);
    tracks.set(name, track);
    return track;
  }

  /** A name that is busier in one slice than another was in minutes takes its track. */
  function claim(name: string, tally: readonly number[]): Track {
    const known = tracks.get(name);
    const isFull = tracks.size - (tracks.has(OTHER) ? 1 : 0) >= MAX_TRACKS;
    if (known || name === OTHER || !isFull) return trackOf(name);
    const idle = idlest();
    const other = trackOf(OTHER);
    if (busyness(tally) <= idle.weight) return other;
    other.absorb(tracks.get(idle.name)!);
    tracks.delete(idle.name);
    return trackOf(name);
  }

  return {
    add(places, tallies) {
      const busiestFirst = [...tallies].sort(([, a], [, b]) => busyness(b) - busyness(a));
      for (const [name, tally] of busiestFirst) claim(name, tally).add(places, tally);
    },
    entries: () => tracks,
    clear(place) {
      for (const track of tracks.values()) track.clear(place);
    },
  };
}
