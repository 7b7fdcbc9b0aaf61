// The history of the installation: what the tallies of all processes grow by from look to look, and
// the requests that they report. Everything in it is bounded.
import type { Clock } from "../../../core/clock.ts";
import {
  createLastReports,
  reportsOf,
  type InstallationStatus,
} from "../../scale/installation/index.ts";
import { createGrowth } from "../metrics/index.ts";
import type { RequestEntry } from "./entries.ts";
import { figuresIn } from "./figures.ts";
import { createFaults, createLast } from "./last.ts";
import type { ProcessReport } from "./recorder.ts";
import { createRequests, type RequestFilter } from "./requests.ts";
import { createTimeline, type RangeName } from "./timeline.ts";

/** The name of this extension, and of the reports that its part in each process makes. */
const NAME = "history";

export function createHistory(clock: Clock) {
  const timeline = createTimeline();
  const last = createLast();
  const faults = createFaults();
  const ended = createRequests();
  const growthIn = createGrowth();
  const countBefore = createLastReports<number>();
  let running: readonly RequestEntry[] = [];
  let runningCount = 0;
  let since = clock.now();
  let lookedAt = since;

  function takeEnded(report: ProcessReport): void {
    const before = countBefore(report.process, report.endedCount) ?? 0;
    for (const [number, entry] of report.ended) if (number > before) ended.add(entry);
  }

  return {
    /** Takes in what has happened since the last look. */
    take(look: InstallationStatus): void {
      const now = clock.now();
      // A clock that was set back begins anew where it stands.
      const from = Math.min(lookedAt, now);
      since = Math.min(since, now);
      lookedAt = now;
      const grown = growthIn(look);
      const reports = reportsOf<ProcessReport>(look, NAME);
      timeline.add((from + now) / 2, {
        seconds: (now - from) / 1000,
        inFlight: look.reports.reduce((sum, { inFlight }) => sum + inFlight, 0),
        ...figuresIn(grown),
      });
      last.takeGrowth(grown, now);
      for (const report of reports) takeEnded(report);
      for (const fault of reports.flatMap((report) => report.faults)) faults.add(fault);
      running = reports.flatMap((report) => report.running);
      runningCount = reports.reduce((sum, report) => sum + report.runningCount, 0);
    },
    /** What is known of a range of time that ends now. `since`: before it nothing is known. */
    range(name: RangeName) {
      const figures = timeline.range(name, clock.now());
      const refusals = last.refusals(figures.from);
      return { ...figures, since, refusals, faults: faults.all(), keys: last.keys() };
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
