// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. A
// line is with the operating system before anybody goes on, so kill -9 loses nothing. Once a second
// the log is brought to the disk, so a power failure loses at most that second. While nothing can
// be written, as on a full disk, requests are refused before a provider is called, and replies that
// are on their way hold back their last byte until their line is written.
import { mkdirSync } from "node:fs";
import { randomHex } from "../../../core/ids.ts";
import { ledgerUnavailable, type Opening } from "../../../core/ledger/ledger.ts";
import { ValidationError } from "../../../core/schema/checker.ts";
import { isoTime, type OpenRecord } from "../records/index.ts";
import { beginSegment, type SpendLogOptions } from "./begin-segment.ts";
import { gatewayInstanceId } from "./data-dir-ids.ts";
import { createLogFault } from "./log-fault.ts";
import type { Segment, SpendEntry } from "./segment.ts";
import { repeat, waitAtMost } from "./timers.ts";

/**
 * How often the log is looked at, brought to the disk, rotated, and tried again if it could not be
 * written.
 */
const TICK_MS = 1_000;
/** How long close() waits for requests that have just ended to be settled. */
const LAST_SETTLES_MS = 2_000;

/** What an open line says of a request, and the end of its spend_id, if that is known already. */
export type SpendRequest = Omit<OpenRecord, "type" | "spend_id"> & Pick<Opening, "token">;

/** The spend log of one process. */
export interface SpendLog {
  /**
   * Begins the first segment. If that is impossible for the time being, the log is in fault and
   * tries again once a second. Throws a ValidationError if data_dir can never be used.
   */
  start(): Promise<void>;
  /**
   * Opens a request, which must be settled whatever comes of it. Throws the 503 while the log is in
   * fault.
   */
  open(request: SpendRequest): SpendEntry;
  /** Why requests are refused; null if they are not. */
  fault(): string | null;
  /**
   * Refuses requests from here on, until the process is started again: a file of the books is
   * broken. Requests that are on their way are still settled.
   */
  fail(reason: string): void;
  /** The names of the segments that this process writes now. */
  ownSegments(): ReadonlySet<string>;
  /** Waits for the last settle lines, for 2 s at most, and closes the segments. */
  close(): Promise<void>;
}

/** Creates a log. Nothing is written before it starts. */
export function createSpendLog(options: SpendLogOptions): SpendLog {
  const { dir, dataDir, segmentBytes, clock } = options;
  const fault = createLogFault(options.diagnose, options.fenced);
  /** The last one is for new requests. Both lines of a request stand in the same segment. */
  let segments: readonly Segment[] = [];
  let idPrefix = "";
  let stopTicking = (): void => undefined;
  let ticking: Promise<void> | undefined;

  /** Begins another segment if there is none, the last one is full, or the day is another. */
  async function rotate(): Promise<void> {
    const today = isoTime(clock.now()).slice(0, 10);
    const last = segments.at(-1);
    if (last && last.size() < segmentBytes && last.name.startsWith(today)) return;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if (idPrefix === "") idPrefix = `sp_${gatewayInstanceId(dataDir).slice(0, 8)}`;
    segments = [...segments, await beginSegment(today, options, fault)];
  }

  function closeSettled(): void {
    const settled = segments.slice(0, -1).filter((segment) => segment.unsettled() === 0);
    segments = segments.filter((segment) => !settled.includes(segment));
    for (const segment of settled) segment.close();
  }

  async function tick(): Promise<void> {
    if (fault.lost()) return;
    try {
      for (const segment of segments) segment.look();
      await rotate();
      if (fault.mayPass()) {
        for (const segment of segments) segment.retry();
        fault.recovered();
      }
      await Promise.all(segments.map((segment) => segment.sync()));
      closeSettled();
    } catch (error) {
      if (error instanceof ValidationError) throw error; // Such a data_dir can never be used.
      fault.failed(error);
    }
  }

  function tickOnce(): void {
    ticking ??= tick().finally(() => {
      ticking = undefined;
    });
  }

  return {
    async start() {
      await tick();
      stopTicking = repeat(clock, TICK_MS, tickOnce);
    },
    open(request) {
      const last = segments.at(-1);
      if (fault.current() !== null || !last) throw ledgerUnavailable();
      return last.open(openRecord(request, idPrefix));
    },
    fault: fault.current,
    fail: fault.refuse,
    ownSegments: () => new Set(segments.map(({ name }) => name)),
    async close() {
      stopTicking();
      await ticking;
      const allSettled = Promise.all(segments.map((segment) => segment.whenSettled()));
      await waitAtMost(clock, LAST_SETTLES_MS, allSettled);
      for (const segment of segments) segment.close();
      segments = [];
    },
  };
}

/** Each field is named: copying the object would take longer than everything else here. */
const openRecord = (request: SpendRequest, idPrefix: string): OpenRecord => ({
  type: "open",
  spend_id: idPrefix + (request.token ?? randomHex(12)),
  time: request.time,
  gateway_request_id: request.gateway_request_id,
  account: request.account,
  key_id: request.key_id,
  model_requested: request.model_requested,
  stream: request.stream,
  hold: request.hold,
});
