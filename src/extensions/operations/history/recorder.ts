// Records in one process which requests run and how the last ones ended. Each report has the last
// ones again, with their numbers, so that a report that is lost, or taken by another reader, loses
// nothing and doubles nothing.
import type { Clock } from "../../../core/clock.ts";
import type { AccessRecord } from "../../../core/http/exchange.ts";
import { randomHex } from "../../../core/ids.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { isCounted } from "../metrics/index.ts";
import {
  askedOf,
  byKind,
  endedEntry,
  kindOf,
  pushBounded,
  runningEntry,
  type LiveRequest,
  type RequestEntry,
} from "./entries.ts";
import { createFaults, type ModelFault } from "./last.ts";

/** Requests of each kind in a report: the last of them. A look comes every few seconds. */
const MAX_ENDED = 100;
/** Running requests of a report. */
const MAX_RUNNING = 200;

/** The report of a process at each look: data that can be sent to another process. */
export interface ProcessReport {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
  /** The last that ended, of each kind the oldest first, with their numbers counted from 1. */
  readonly ended: readonly (readonly [number: number, entry: RequestEntry])[];
  /** How many have ended since the start of the process. */
  readonly endedCount: number;
  /** The last fault of each model: of more requests than `ended` has. */
  readonly faults: readonly ModelFault[];
  /** Requests that run, the oldest first. */
  readonly running: readonly RequestEntry[];
  /** How many run. `running` may have fewer. */
  readonly runningCount: number;
}

export function startRecorder(clock: Clock) {
  const process = randomHex(8);
  const running = new Set<LiveRequest>();
  const ended = byKind<ProcessReport["ended"][number]>();
  const faults = createFaults();
  let number = 0;

  function end(record: AccessRecord, live: LiveRequest | undefined): void {
    const entry = endedEntry(record, live);
    number += 1;
    pushBounded(ended[kindOf(entry)], [number, entry], MAX_ENDED);
  }

  return {
    /** Hears of one request. */
    observe(): RequestObserver {
      let live: LiveRequest | undefined;
      let left: AccessRecord | undefined;
      return {
        opened(opening, chat) {
          const startedAt = clock.now();
          live = { opening, asked: askedOf(chat), startedAt, settlement: undefined };
          running.add(live);
        },
        settled({ requestId }, settlement) {
          faults.addOf(requestId, settlement.attempts, clock.now());
          if (!live) return;
          running.delete(live);
          live.settlement = settlement;
          if (left) end(left, live);
        },
        responded(route, record) {
          if (!isCounted(route, record)) return;
          // The client left, and the provider is still being read: its end is the request's.
          if (live && !live.settlement) left = record;
          else end(record, live);
        },
      };
    },
    report: (): ProcessReport => ({
      process,
      ended: Object.values(ended).flat(),
      endedCount: number,
      faults: faults.all(),
      running: [...running].slice(0, MAX_RUNNING).map(runningEntry),
      runningCount: running.size,
    }),
  };
}
