// The history of the installation: what the tallies of all processes grow by from look to look, and
// the requests that they report. Everything in it is bounded.
import type { Clock } from "../../../core/clock.ts";
import { reportsOf, type InstallationStatus } from "../../scale/installation/index.ts";
import { growth, merge, talliesOf, type ProcessTally, type Tally } from "../metrics/index.ts";
import type { RequestEntry } from "./entries.ts";
import { figuresIn } from "./figures.ts";
import { createFaults, createLast, putLast } from "./last.ts";
import type { ProcessReport } from "./recorder.ts";
import { createRequests, type RequestFilter } from "./requests.ts";
import { createTimeline, type RangeName } from "./timeline.ts";

/** Processes whose last report is kept: all of server.workers (256), and as many dead ones. */
const MAX_PROCESSES = 512;

/** The name of this extension, and of the reports that its part in each process makes. */
const NAME = "history";

export function createHistory(clock: Clock) {
  const timeline = createTimeline();
  const last = createLast();
  const faults = createFaults();
  const ended = createRequests();
  /** The last report of each process, with a copy of its tally. */
  const tallies = new Map<string, ProcessTally>();
  /** The number of the last request that was taken, by process. */
  const taken = new Map<string, number>();
  let running: readonly RequestEntry[] = [];
  let runningCount = 0;
  let since = clock.now();
  let lookedAt = since;

  function grownBy(report: ProcessTally): Tally {
    const { process, number, tally } = report;
    const before = tallies.get(process);
    if (before && before.number >= number) return new Map();
    putLast(tallies, process, { ...report, tally: merge([tally]) }, MAX_PROCESSES);
    return growth(tally, before?.tally);
  }

  function takeEnded({ process, ended: reported }: ProcessReport): void {
    const before = taken.get(process) ?? 0;
    const news = reported.filter(([number]) => number > before);
    for (const [, entry] of news) ended.add(entry);
    const number = Math.max(before, ...news.map(([number]) => number));
    putLast(taken, process, number, MAX_PROCESSES);
  }

  return {
    /** Takes in what has happened since the last look. */
    take(look: InstallationStatus): void {
      const now = clock.now();
      // A clock that was set back begins anew where it stands.
      const from = Math.min(lookedAt, now);
      since = Math.min(since, now);
      lookedAt = now;
      const grown = merge(talliesOf(look).map(grownBy));
      const reports = reportsOf<ProcessReport>(look, NAME);
      timeline.add({
        at: (from + now) / 2,
        seconds: (now - from) / 1000,
        inFlight: look.reports.reduce((sum, { inFlight }) => sum + inFlight, 0),
        figures: figuresIn(grown),
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
