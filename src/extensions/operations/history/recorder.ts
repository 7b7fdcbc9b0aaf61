// Records in one process what happens to its requests. What has happened is cut into slices of two
// seconds. Each report has the last slices once more, with their numbers, so that a report that is
// lost, or taken by another reader, loses nothing and doubles nothing.
import { systemClock, type Clock } from "../../../core/clock.ts";
import type { AccessRecord } from "../../../core/http/exchange.ts";
import { randomHex } from "../../../core/ids.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { askedOf, runningEntry, type LiveRequest, type RequestEntry } from "./entries.ts";
import { createSliceCounter, type Slice, type SliceCounter } from "./slice.ts";

/** How long a slice is, in milliseconds. */
export const SLICE_MS = 2_000;
/** Slices of a report: those of 16 seconds at least. A look comes every few seconds. */
const REPORTED = 8;
/** Running requests of a report. */
const MAX_RUNNING = 200;

/** Paths of which only failures are recorded: monitoring programs request them all the time. */
const QUIET = ["/healthz", "/health", "/readyz", "/openapi.json"];
const LISTS = ["/v1/models", "/v1/models/{id}"];

/** The report of a process at each look: data that can be sent to another process. */
export interface ProcessReport {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
  /** When its recording began, in milliseconds since 1970. */
  readonly since: number;
  /** The last slices that are complete. Each is reported several times. */
  readonly slices: readonly Slice[];
  /** Requests that run, the oldest first. */
  readonly running: readonly RequestEntry[];
  /** How many run. `running` may have fewer. */
  readonly runningCount: number;
}

export type Recorder = ReturnType<typeof startRecorder>;

/** Whether a response counts among the requests. */
function counts(route: string, { status }: AccessRecord): boolean {
  if (QUIET.includes(route)) return false;
  return !LISTS.includes(route) || status >= 400;
}

export function startRecorder(clock: Clock = systemClock) {
  const process = randomHex(8);
  const since = clock.now();
  const running = new Set<LiveRequest>();
  let reported: Slice[] = [];
  let current = createSliceCounter(1, sliceStart(since));

  /** The slice of this moment. */
  function counter(): SliceCounter {
    const at = sliceStart(clock.now());
    if (at === current.at) return current;
    reported = [...reported, current.close()].slice(-REPORTED);
    current = createSliceCounter(current.seq + 1, at);
    return current;
  }

  return {
    /** Hears of one request. */
    observe(): RequestObserver {
      let live: LiveRequest | undefined;
      const end = (record: AccessRecord): void => counter().responded(record, live, clock.now());
      return {
        opened(opening, chat) {
          const startedAt = clock.now();
          const asked = askedOf(chat);
          live = { opening, asked, startedAt, settlement: undefined, record: undefined };
          running.add(live);
        },
        settled(opening, settlement, durationMs) {
          const time = clock.now();
          counter().settled({ opening, settlement, durationMs: Math.round(durationMs), time });
          if (!live) return;
          running.delete(live);
          live.settlement = settlement;
          if (live.record) end(live.record);
        },
        responded(route, record) {
          if (!counts(route, record)) return;
          // The client left, and the provider is still being read: its end is the request's.
          if (live && !live.settlement) live.record = record;
          else end(record);
        },
      };
    },
    /** Its slices are whole: what happened in the current one comes in a later report. */
    report(): ProcessReport {
      counter();
      const shown = [...running].slice(0, MAX_RUNNING).map(runningEntry);
      return { process, since, slices: reported, running: shown, runningCount: running.size };
    },
  };
}

const sliceStart = (time: number): number => Math.floor(time / SLICE_MS) * SLICE_MS;
