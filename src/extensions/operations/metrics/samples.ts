// Counters, and their sums over processes.
import { FAMILIES, type Family, type FamilyName } from "./families.ts";

/**
 * Figures by family, and by the values of its labels with "\0" between them. Of a histogram: the
 * count of each bucket, that of what is above them all, and the sum. Of others the last figure
 * counts.
 */
export type Samples = Map<string, Map<string, number[]>>;

/** The entry of a map; it is made if it is missing. */
function entryOf<V>(map: Map<string, V>, key: string, create: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const created = create();
  map.set(key, created);
  return created;
}

/** Counts `value` in a family, under the values of its labels. */
export function count(samples: Samples, name: FamilyName, labels: readonly string[], value = 1) {
  const { buckets = [] }: Family = FAMILIES[name];
  const family = entryOf(samples, name, () => new Map<string, number[]>());
  const figures = entryOf(family, labels.join("\0"), () =>
    Array<number>(buckets.length + 2).fill(0),
  );
  let bucket = 0;
  while (value > buckets[bucket]!) bucket += 1;
  figures[bucket]! += 1;
  figures[buckets.length + 1]! += value;
}

/** The sums of the counts of several processes. */
export function merge(all: readonly Samples[]): Samples {
  const sums: Samples = new Map();
  for (const [name, family] of all.flatMap((samples) => [...samples])) {
    const sum = entryOf(sums, name, () => new Map<string, number[]>());
    for (const [labels, figures] of family) {
      const before = sum.get(labels);
      sum.set(
        labels,
        figures.map((figure, at) => figure + (before?.[at] ?? 0)),
      );
    }
  }
  return sums;
}
