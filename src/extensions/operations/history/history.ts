// The history of the installation: the slices of all processes, put together. Everything in it is
// bounded: some 2 MB of figures when 50 accounts and 50 models are always busy, 2,000 requests.
import type { Clock } from "../../../core/clock.ts";
import type { ProcessReport, RequestEntry, Slice } from "./contracts.ts";
import { ACCOUNT, MODEL, OUTCOMES, TOTAL } from "./figures.ts";
import { createFaults } from "./faults.ts";
import { createRecent, type RequestFilter } from "./recent.ts";
import { SLICE_MS } from "./recorder.ts";
import { createKeyUses, createRefusals } from "./refusals.ts";
import { rangeOf, type RangeFigures } from "./ranges.ts";
import { createTimeline, LEVELS } from "./timeline.ts";
import { createTrack, createTracks } from "./tracks.ts";

/** Processes whose last slice is remembered. */
const MAX_PROCESSES = 200;

/** How the installation is at the moment of a look. */
export interface Moment {
  /** Requests that have not had their whole answer, of all processes. */
  readonly inFlight: number;
  /** Seconds by which the event loop was late, at the 99th percentile. */
  readonly loopDelay: number;
}

/** A page of requests. */
export interface FoundRequests {
  /** In the order of Recent.find(). */
  readonly requests: readonly RequestEntry[];
  /** How many fit, on all pages. */
  readonly count: number;
  /** How many run at the moment, whether they fit or not. */
  readonly running: number;
}

export interface History {
  /** Takes in what all processes have reported. */
  take(reports: readonly ProcessReport[], moment: Moment): void;
  /** The figures of a range of LEVELS; undefined if there is no such range. */
  range(name: string): RangeFigures | undefined;
  /** A page of the requests that fit. `skip` of them stand on the pages before. */
  find(filter: RequestFilter, page: { skip: number; limit: number }): FoundRequests;
  /** Changes whenever something new has been taken in. */
  version(): number;
}

export function createHistory(clock: Clock): History {
  const timeline = createTimeline(clear);
  const total = createTrack(TOTAL);
  const placesNow = () =>
    timeline.bins(0, clock.now()).flatMap(({ place }) => (place === undefined ? [] : [place]));
  const accounts = createTracks(ACCOUNT, requestsIn, placesNow);
  const models = createTracks(MODEL, (tally) => tally[MODEL.at("attempts")]!, placesNow);
  const refusals = createRefusals();
  const keys = createKeyUses();
  const recent = createRecent();
  const faults = createFaults();
  /** The last slice that was taken, by process. */
  const taken = new Map<string, number>();
  let running: readonly RequestEntry[] = [];
  let runningCount = 0;
  let since = clock.now();
  /** All slices that began before are taken. */
  let completeUntil = since;
  let version = 0;

  function clear(place: number): void {
    for (const tracks of [total, accounts, models]) tracks.clear(place);
  }

  function takeSlice(slice: Slice): void {
    const places = timeline.placesFor(slice.at);
    total.add(places, slice.total);
    accounts.add(places, slice.accounts);
    models.add(places, slice.models);
    refusals.add(slice.refusals.values());
    keys.add(slice.keys);
    faults.add(slice.faults.values());
    recent.add(slice.ended);
  }

  function takeReport({ process, slices }: ProcessReport): void {
    const last = taken.get(process) ?? 0;
    for (const slice of slices) if (slice.seq > last) takeSlice(slice);
    taken.delete(process);
    taken.set(process, Math.max(last, slices.at(-1)?.seq ?? 0));
    const [oldest] = taken.keys();
    if (taken.size > MAX_PROCESSES && oldest !== undefined) taken.delete(oldest);
  }

  return {
    take(reports, { inFlight, loopDelay }) {
      const now = clock.now();
      since = Math.min(since, now, ...reports.map((report) => report.since));
      for (const report of reports) takeReport(report);
      const gauges = TOTAL.empty();
      gauges[TOTAL.at("in_flight")] = inFlight;
      gauges[TOTAL.at("loop_delay")] = loopDelay;
      total.add(timeline.placesFor(now), gauges);
      running = reports.flatMap((report) => report.running);
      runningCount = reports.reduce((sum, report) => sum + report.runningCount, 0);
      completeUntil = Math.floor(now / SLICE_MS) * SLICE_MS;
      version += 1;
    },
    range(name) {
      const level = LEVELS.findIndex(({ range }) => range === name);
      if (level === -1) return undefined;
      return rangeOf({
        level,
        now: clock.now(),
        since,
        completeUntil,
        timeline,
        total,
        accounts,
        models,
        refusals,
        keys,
        faults,
      });
    },
    find(filter, { skip, limit }) {
      const found = recent.find(filter, running, clock.now());
      const requests = found.slice(skip, skip + limit);
      return { requests, count: found.length, running: runningCount };
    },
    version: () => version,
  };
}

const requestsIn = (tally: readonly number[]): number =>
  OUTCOMES.reduce((sum, outcome) => sum + tally[ACCOUNT.at(outcome)]!, 0);
