// The history of the installation: the slices of all processes, put together. Everything in it is
// bounded.
import type { Clock } from "../../../core/clock.ts";
import { emptyCounts } from "./counts.ts";
import type { RequestEntry } from "./entries.ts";
import { count } from "./figures.ts";
import { addLast, nothingYet, putLast } from "./last.ts";
import { SLICE_MS, type ProcessReport } from "./recorder.ts";
import { createRequests, type RequestFilter } from "./requests.ts";
import type { Slice } from "./slice.ts";
import { createTimeline, type RangeName } from "./timeline.ts";

/** Processes whose last slice is remembered. */
const MAX_PROCESSES = 200;

/** How the installation is at the moment of a look. */
export interface Moment {
  /** Requests that have not had their whole answer, of all processes. */
  readonly inFlight: number;
  /** Seconds by which the event loop was late, at the 99th percentile. */
  readonly loopDelay: number;
}

export function createHistory(clock: Clock) {
  const timeline = createTimeline();
  const last = nothingYet();
  const ended = createRequests();
  /** The number of the last slice that was taken, by process. */
  const taken = new Map<string, number>();
  let running: readonly RequestEntry[] = [];
  let runningCount = 0;
  let since = clock.now();
  let until = since;

  function takeSlice(slice: Slice): void {
    timeline.add(slice.at, slice.counts);
    addLast(last, slice.last);
    ended.add(slice.ended);
  }

  function takeReport({ process, slices }: ProcessReport): void {
    const before = taken.get(process) ?? 0;
    for (const slice of slices) if (slice.seq > before) takeSlice(slice);
    putLast(taken, process, slices.at(-1)?.seq ?? before, MAX_PROCESSES);
  }

  return {
    /** Takes in what all processes have reported. */
    take(reports: readonly ProcessReport[], { inFlight, loopDelay }: Moment): void {
      const now = clock.now();
      since = Math.min(since, now, ...reports.map((report) => report.since));
      until = Math.floor(now / SLICE_MS) * SLICE_MS;
      for (const report of reports) takeReport(report);
      const sampled = emptyCounts();
      count([sampled.total], "in_flight", inFlight);
      count([sampled.total], "loop_delay", loopDelay);
      timeline.add(now, sampled);
      running = reports.flatMap((report) => report.running);
      runningCount = reports.reduce((sum, report) => sum + report.runningCount, 0);
    },
    /**
     * What is known of a range of time that ends now. Refusals are the most frequent first; an
     * episode that is not over is reported whole, also from before the range. Faults and keys are
     * those since the start.
     */
    range(name: RangeName) {
      const figures = timeline.range(name, clock.now(), { since, until });
      const refusals = [...last.refusals.values()]
        .filter((episode) => episode.last >= figures.from)
        .sort((a, b) => b.count - a.count || b.last - a.last);
      const faults = [...last.faults.values()];
      return { ...figures, refusals, faults, keys: [...last.keys.values()] };
    },
    /**
     * A page of the requests that fit: `skip` of them stand on the pages before. `count`: those on
     * all pages. `running`: all that run, whether they fit or not.
     */
    find(filter: RequestFilter, { skip, limit }: { skip: number; limit: number }) {
      const found = ended.find(filter, running, clock.now());
      const requests = found.slice(skip, skip + limit);
      return { requests, count: found.length, running: runningCount };
    },
  };
}
