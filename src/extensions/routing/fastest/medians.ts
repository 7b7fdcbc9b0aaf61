// Times to the first token of each model, and their medians over the last ten minutes.

const PERIOD_MS = 600_000;
/** The most samples of one model. More would hardly change its median. */
const MAX_SAMPLES = 500;
/** How long a computed median is reused, in milliseconds. */
const FRESH_MS = 1_000;

interface Sample {
  /** By the monotonic clock, in milliseconds. */
  readonly at: number;
  /** Milliseconds to the first token. */
  readonly ms: number;
}

interface Series {
  samples: Sample[];
  median: number | undefined;
  computedAt: number;
}

/** `now`: a monotonic clock in milliseconds. */
export function createMedians(now: () => number) {
  const all = new Map<string, Series>();

  return {
    /** Adds a sample, in milliseconds. Beyond MAX_SAMPLES the oldest one is dropped. */
    add(model: string, ms: number): void {
      const series = all.get(model) ?? { samples: [], median: undefined, computedAt: -Infinity };
      series.samples.push({ at: now(), ms });
      if (series.samples.length > MAX_SAMPLES) series.samples.shift();
      all.set(model, series);
    },
    /** The median in milliseconds. Undefined: the model has no sample in the last ten minutes. */
    of(model: string): number | undefined {
      const series = all.get(model);
      if (!series) return undefined;
      const time = now();
      if (time - series.computedAt < FRESH_MS && series.median !== undefined) return series.median;
      series.samples = series.samples.filter(({ at }) => time - at < PERIOD_MS);
      const sorted = series.samples.map(({ ms }) => ms).sort((a, b) => a - b);
      series.median = sorted[Math.floor(sorted.length / 2)];
      series.computedAt = time;
      return series.median;
    },
  };
}

export type Medians = ReturnType<typeof createMedians>;
