// This extension's report of one process that serves: data that can be sent to another process.
import type { monitorEventLoopDelay } from "node:perf_hooks";
import type { Snapshot } from "../../../core/chat/context.ts";
import type { ModelStatus } from "./contracts.ts";

/** How often the delay of the event loop is measured, in milliseconds. */
export const RESOLUTION_MS = 20;

/** Inferred, because the type's name differs between versions of @types/node. */
type DelayHistogram = ReturnType<typeof monitorEventLoopDelay>;

/** Delays of the event loop in seconds, by quantile: "0.5", "0.99" and "1". */
export type Delays = Readonly<Record<string, number>>;

export interface ProcessReport {
  /** How late the event loop was since the previous report: the first sign of overload. */
  readonly delays: Delays;
  /** All models of the active configuration, in its order, with the breakers of this process. */
  readonly models: readonly ModelStatus[];
}

export function processReport({ catalog }: Snapshot, histogram: DelayHistogram): ProcessReport {
  const models = [...catalog.models.values()].map(({ name, provider, upstreamModel, status }) => {
    const { state, failures, retryMs, lastFault, lastAnswer } = status();
    return {
      model: name,
      provider: provider.name,
      upstream_model: upstreamModel,
      breaker: {
        state,
        failures,
        retry_ms: Math.ceil(retryMs),
        last_fault: lastFault,
        last_answer: lastAnswer,
      },
    };
  });
  return { delays: delaysIn(histogram), models };
}

/** The delays in a histogram, less the resolution that each includes. Resets the histogram. */
function delaysIn(histogram: DelayHistogram): Delays {
  const late = (nanoseconds: number): number =>
    Math.max(0, nanoseconds / 1e9 - RESOLUTION_MS / 1000);
  const delays = {
    0.5: late(histogram.percentile(50)),
    0.99: late(histogram.percentile(99)),
    1: late(histogram.max),
  };
  histogram.reset();
  return delays;
}
