// Records the running requests of one process and those that ended last. Each report repeats the
// last ended requests, numbered: if a report is lost, its reader misses none, and it skips those
// that it has already.
import type { Clock } from "../../../core/clock.ts";
import type { AccessRecord } from "../../../core/http/exchange.ts";
import { randomHex } from "../../../core/ids.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import { isCounted } from "../metrics/index.ts";
import {
  propertiesOf,
  byKind,
  endedEntry,
  kindOf,
  pushBounded,
  runningEntry,
  type LiveRequest,
  type RequestEntry,
} from "./entries.ts";
import { createLastFaults, type ModelFault } from "./last.ts";

/** The most ended requests of each kind in a report. Reports are collected every few seconds. */
const MAX_ENDED = 100;
/** The most running requests in a report. */
const MAX_RUNNING = 200;

/** The report of one process, as data that can be cloned. */
export interface ProcessReport {
  /** A random id, new at each start of the process. */
  readonly process: string;
  /** The last ended requests of each kind, the oldest first, numbered from 1. */
  readonly ended: readonly (readonly [number: number, entry: RequestEntry])[];
  /** How many requests have ended since the start of the process. */
  readonly endedCount: number;
  /** The last fault of each model, even if `ended` no longer has the request. */
  readonly faults: readonly ModelFault[];
  /** The running requests, oldest first; at most MAX_RUNNING. */
  readonly running: readonly RequestEntry[];
  /** The number of all running requests. */
  readonly runningCount: number;
}

export function startRecorder(clock: Clock) {
  const process = randomHex(8);
  const running = new Set<LiveRequest>();
  const ended = byKind<ProcessReport["ended"][number]>();
  const faults = createLastFaults();
  let number = 0;

  function end(record: AccessRecord, live: LiveRequest | undefined): void {
    const entry = endedEntry(record, live);
    number += 1;
    pushBounded(ended[kindOf(entry)], [number, entry], MAX_ENDED);
  }

  return {
    /** The observer of one request. */
    observe(): RequestObserver {
      let live: LiveRequest | undefined;
      let accessRecord: AccessRecord | undefined;
      return {
        opened(opening, chat) {
          const startedAt = clock.now();
          live = { opening, asked: propertiesOf(chat), startedAt, settlement: undefined };
          running.add(live);
        },
        settled({ requestId }, settlement) {
          faults.addOf(requestId, settlement.attempts, clock.now());
          if (!live) return;
          running.delete(live);
          live.settlement = settlement;
          if (accessRecord) end(accessRecord, live);
        },
        responded(route, record) {
          if (!isCounted(route, record)) return;
          // The client disconnected while the provider was still sending: wait for the settlement.
          if (live && !live.settlement) accessRecord = record;
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
