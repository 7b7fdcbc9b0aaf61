// Records in one process what happens to its requests. What has happened is cut into slices of two
// seconds. Each report has the slices of the last seconds once more, with their numbers, so that a
// report that is lost, or taken by another reader, loses nothing and doubles nothing.
import { systemClock, type Clock } from "../../../core/clock.ts";
import type { Observation } from "../../../core/extension/extension.ts";
import type { AccessRecord } from "../../../core/http/access-log.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Opening } from "../../../core/ledger/ledger.ts";
import type { ProcessReport, Slice } from "./contracts.ts";
import { askedOf, runningEntry, type LiveRequest } from "./entries.ts";
import { createSliceCounter, type SliceCounter } from "./slice.ts";

/** How long a slice is, in milliseconds. */
export const SLICE_MS = 2_000;
/** How long a slice is reported again. A look comes every few seconds. In milliseconds. */
const REPORTED_MS = 16_000;
/** Running requests of a report. */
const MAX_RUNNING = 200;
/**
 * Settled requests whose response has not left. More than these are forgotten, the oldest first.
 */
const MAX_WAITING = 5_000;

/** Paths of which only failures are recorded: monitoring programs request them all the time. */
const QUIET = ["/healthz", "/health", "/readyz", "/openapi.json"];
const LISTS = ["/v1/models", "/v1/models/{id}"];

/** An observation whose report is a ProcessReport. */
export interface Recorder extends Observation {
  /** Its slices are whole: what happened in the current one comes in a later report. */
  report(): ProcessReport;
}

/** Whether a response counts among the requests. */
function counts(route: string, { status }: AccessRecord): boolean {
  if (QUIET.includes(route)) return false;
  return !LISTS.includes(route) || status >= 400;
}

export function startRecorder(clock: Clock = systemClock): Recorder {
  const process = randomHex(8);
  const since = clock.now();
  const running = new Map<Opening, LiveRequest>();
  /** By request id: opened, and the response has not left. */
  const waiting = createWaiting();
  let reported: Slice[] = [];
  let current = createSliceCounter(1, sliceStart(clock.now()));

  /** The slice of this moment. */
  function counter(): SliceCounter {
    const at = sliceStart(clock.now());
    if (at === current.at) return current;
    const slice = current.close();
    if (slice) reported.push(slice);
    current = createSliceCounter(current.seq + 1, at);
    return current;
  }

  function end(record: AccessRecord, live: LiveRequest | undefined): void {
    if (live) waiting.remove(live);
    counter().responded(record, live, clock.now());
  }

  return {
    observer: {
      opened(opening, chat) {
        const live: LiveRequest = {
          opening,
          asked: askedOf(chat),
          startedAt: clock.now(),
          settlement: undefined,
          record: undefined,
        };
        running.set(opening, live);
        waiting.add(live);
      },
      settled(opening, settlement, durationMs) {
        counter().settled({ opening, settlement, durationMs, time: clock.now() });
        const live = running.get(opening);
        if (!live) return;
        running.delete(opening);
        live.settlement = settlement;
        if (live.record) end(live.record, live);
      },
      responded(route, record) {
        if (!counts(route, record)) return;
        const live = waiting.find(record);
        // The client left, and the provider is still being read: its end is the request's.
        if (live && !live.settlement) live.record = record;
        else end(record, live);
      },
    },
    report() {
      counter();
      const horizon = clock.now() - REPORTED_MS;
      reported = reported.filter(({ at }) => at >= horizon && at <= clock.now());
      return {
        process,
        since,
        slices: [...reported],
        running: [...running.values()].slice(0, MAX_RUNNING).map(runningEntry),
        runningCount: running.size,
      };
    },
  };
}

const sliceStart = (time: number): number => Math.floor(time / SLICE_MS) * SLICE_MS;

/** Requests whose response has not left, by their ids. Several may have the same. */
interface Waiting {
  add(live: LiveRequest): void;
  remove(live: LiveRequest): void;
  /** The request whose response this is; undefined if it was refused before the books. */
  find(record: AccessRecord): LiveRequest | undefined;
}

function createWaiting(): Waiting {
  const byId = new Map<string, LiveRequest[]>();

  function remove(live: LiveRequest): void {
    const { requestId } = live.opening;
    const all = byId.get(requestId) ?? [];
    if (all.length > 1) all.splice(all.indexOf(live), 1);
    else byId.delete(requestId);
  }

  return {
    add(live) {
      const [oldest] = byId.keys();
      if (byId.size >= MAX_WAITING && oldest !== undefined) byId.delete(oldest);
      const { requestId } = live.opening;
      const others = byId.get(requestId);
      if (others) others.push(live);
      else byId.set(requestId, [live]);
    },
    remove,
    find({ request_id, status, provider }) {
      const all = byId.get(request_id) ?? [];
      const settled = all.find(({ settlement }) => settlement?.httpStatus === status);
      if (settled) return settled;
      // Only a client that has left gets its line before its request is settled.
      if (status === 499) return all.find(({ record }) => !record);
      // A request that was refused before the books has no provider, and is another one.
      return provider === undefined ? undefined : all.find(({ settlement }) => settlement);
    },
  };
}
