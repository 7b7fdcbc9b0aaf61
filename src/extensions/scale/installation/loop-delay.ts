// How late the event loop is: the first sign of a process that has too much to do.
import { monitorEventLoopDelay } from "node:perf_hooks";

/** How often the delay is measured, in milliseconds. What is measured is longer by this. */
const RESOLUTION_MS = 20;

/** In seconds, by quantile: "0.5", "0.99" and "1". */
export type Delays = Readonly<Record<string, number>>;

export interface LoopDelay {
  /** Begins to measure. */
  start(): void;
  /** Ends it. What was measured can still be taken. */
  stop(): void;
  /** The delays since the last call. */
  take(): Delays;
}

export function createLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  const late = (nanoseconds: number): number =>
    Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
  return {
    start: () => histogram.enable(),
    stop: () => histogram.disable(),
    take() {
      const delays = {
        0.5: late(histogram.percentile(50)),
        0.99: late(histogram.percentile(99)),
        1: late(histogram.max),
      };
      histogram.reset();
      return delays;
    },
  };
}
