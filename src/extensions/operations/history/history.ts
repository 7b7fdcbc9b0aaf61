// The history of the installation: the growth of all processes' tallies between two collections of
// their reports, and the requests that the reports list. Everything in it is bounded.
import type { Clock } from "../../../core/clock.ts";
import { createLastReports, type InstallationStatus } from "../../scale/installation/index.ts";
import { createGrowth } from "../metrics/index.ts";
import { createLastFaults, createLastRefusals } from "./last.ts";
import type { ProcessReport, RequestEntry } from "./recorder.ts";
import { createRequests, type RequestFilter } from "./requests.ts";
import { createTimeline, figuresIn, type RangeName } from "./timeline.ts";

/** The name of this extension, and of the reports that its part in each process makes. */
const NAME = "history";

export function createHistory(clock: Clock) {
  const timeline = createTimeline();
  const last = createLastRefusals();
  const faults = createLastFaults();
  const ended = createRequests();
  const growthIn = createGrowth();
  const previousCount = createLastReports<number>();
  let running: readonly RequestEntry[] = [];
  let runningCount = 0;
  let since = clock.now();
  let collectedAt = since;

  function addEnded(report: ProcessReport): void {
    const before = previousCount(report.process, report.endedCount) ?? 0;
    for (const [number, entry] of report.ended) if (number > before) ended.add(entry);
  }

  return {
    /** Adds everything that has happened since the previous collection of reports. */
    add(collected: InstallationStatus): void {
      const now = clock.now();
      // If the clock was set back, the interval is empty.
      const from = Math.min(collectedAt, now);
      since = Math.min(since, now);
      collectedAt = now;
      const grown = growthIn(collected);
      const reports = collected.reports.map(({ extensions }) => extensions[NAME] as ProcessReport);
      timeline.add((from + now) / 2, {
        seconds: (now - from) / 1000,
        inFlight: collected.reports.reduce((sum, { inFlight }) => sum + inFlight, 0),
        ...figuresIn(grown),
      });
      last.addGrowth(grown, now);
      for (const report of reports) addEnded(report);
      for (const fault of reports.flatMap((report) => report.faults)) faults.add(fault);
      running = reports.flatMap((report) => report.running);
      runningCount = reports.reduce((sum, report) => sum + report.runningCount, 0);
    },
    /** The figures of a range that ends now. `since`: when the recorded history begins. */
    range(name: RangeName) {
      const figures = timeline.range(name, clock.now());
      const refusals = last.refusals(figures.from);
      return { ...figures, since, refusals, faults: faults.all(), keys: last.keys() };
    },
    /**
     * A page of the requests that match `filter`, after the first `skip`. `count`: matches on all
     * pages. `running`: all running requests, matching or not.
     */
    find(filter: RequestFilter, { skip, limit }: { skip: number; limit: number }) {
      const found = ended.find(filter, running, clock.now());
      const requests = found.slice(skip, skip + limit);
      return { requests, count: found.length, running: runningCount };
    },
  };
}
