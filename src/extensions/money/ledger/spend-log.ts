// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. A
// line is with the operating system before anybody goes on, so kill -9 loses nothing. Once a second
// the log is brought to the disk, so a power failure loses at most that second. While nothing can
// be written, as on a full disk, requests are refused before a provider is called, and replies that
// are on their way hold back their last byte until their line is written.
import { randomHex } from "../../../core/ids.ts";
import { ledgerUnavailable, type Opening } from "../../../core/ledger/ledger.ts";
import { ValidationError } from "../../../core/schema/checker.ts";
import type { OpenRecord } from "../records/index.ts";
import { createLogFault } from "./log-fault.ts";
import { createRotation, type SpendLogOptions } from "./rotation.ts";
import type { SpendEntry } from "./segment.ts";
import { repeat, waitAtMost } from "./timers.ts";

/**
 * How often the log is looked at, brought to the disk, rotated, and tried again if it could not be
 * written.
 */
const TICK_MS = 1_000;
/** How long close() waits for requests that have just ended to be settled. */
const LAST_SETTLES_MS = 2_000;

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
  open(request: Omit<OpenRecord, "type" | "spend_id"> & Pick<Opening, "token">): SpendEntry;
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
  const { clock, diagnose, fenced } = options;
  const fault = createLogFault(diagnose, fenced);
  const rotation = createRotation(options, fault);
  let stopTicking = (): void => undefined;
  let ticking: Promise<void> | undefined;

  async function tick(): Promise<void> {
    if (fault.lost()) return;
    try {
      for (const segment of rotation.all()) segment.look();
      await rotation.rotate();
      if (fault.mayPass()) {
        for (const segment of rotation.all()) segment.retry();
        fault.recovered();
      }
      await Promise.all(rotation.all().map((segment) => segment.sync()));
      rotation.closeSettled();
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
      fault.started();
      stopTicking = repeat(clock, TICK_MS, tickOnce);
    },
    open(request) {
      const current = rotation.current();
      if (fault.current() !== null || !current) throw ledgerUnavailable();
      // Each field is named: copying the object would take longer than everything else here.
      return current.open({
        type: "open",
        spend_id: rotation.idPrefix() + (request.token ?? randomHex(12)),
        time: request.time,
        gateway_request_id: request.gateway_request_id,
        account: request.account,
        key_id: request.key_id,
        model_requested: request.model_requested,
        stream: request.stream,
        hold: request.hold,
      });
    },
    fault: fault.current,
    fail: fault.refuse,
    ownSegments: () => new Set(rotation.all().map(({ name }) => name)),
    async close() {
      stopTicking();
      await ticking;
      const allSettled = Promise.all(rotation.all().map((segment) => segment.whenSettled()));
      await waitAtMost(clock, LAST_SETTLES_MS, allSettled);
      rotation.closeAll();
    },
  };
}
