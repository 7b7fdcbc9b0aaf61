// The counts between two snapshots of a gateway, or since its start.
import type { Snapshot } from "./look.ts";
import { numberOf, type Sample } from "./metrics-text.ts";

export interface Counts {
  /** Seconds between the looks. Undefined: it was counted since the start. */
  readonly seconds: number | undefined;
  /** The samples of this name, with what was counted as their values. */
  grown(name: string): readonly Sample[];
  /** The sum of those samples of a counter for which `isMeant` is true. */
  sum(name: string, isMeant?: (labels: Sample["labels"]) => boolean): number;
  /**
   * The upper bound of the bucket of a histogram in which this share of its values ends. Undefined:
   * there is no value.
   */
  quantile(name: string, share: number): number | undefined;
}

/** "since the start", or "in the last 10 s". */
export const periodText = ({ seconds }: Counts): string =>
  seconds === undefined ? "since the start" : `in the last ${Math.round(seconds)} s`;

/** `before` undefined: since the start. A counter that fell began anew, at zero. */
export function countsBetween(before: Snapshot | undefined, look: Snapshot): Counts {
  const earlier = new Map((before?.samples ?? []).map((sample) => [keyOf(sample), sample.value]));
  const growthOf = (sample: Sample): Sample => {
    const known = earlier.get(keyOf(sample)) ?? 0;
    return sample.value < known ? sample : { ...sample, value: sample.value - known };
  };
  const grown = (name: string) =>
    look.samples.filter((sample) => sample.name === name).map(growthOf);
  return {
    seconds: before && (look.at - before.at) / 1000,
    grown,
    sum: (name, isMeant = () => true) =>
      grown(name)
        .filter(({ labels }) => isMeant(labels))
        .reduce((total, { value }) => total + value, 0),
    quantile(name, share) {
      // Buckets of the format are cumulative.
      const bounds = new Map<number, number>();
      for (const { labels, value } of grown(`${name}_bucket`)) {
        const bound = numberOf(labels["le"] ?? "");
        bounds.set(bound, (bounds.get(bound) ?? 0) + value);
      }
      const sorted = [...bounds].sort(([one], [other]) => one - other);
      const all = sorted.at(-1)?.[1] ?? 0;
      return all === 0 ? undefined : sorted.find(([, count]) => count >= share * all)?.[0];
    },
  };
}

const keyOf = ({ name, labels }: Sample): string => JSON.stringify([name, labels]);
