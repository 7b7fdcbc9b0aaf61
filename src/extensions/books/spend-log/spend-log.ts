// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. A
// line is with the operating system before anybody goes on, so kill -9 loses nothing. Once a second
// the log is brought to the disk, so a power failure loses at most that second. While nothing can
// be written, as on a full disk, requests are refused before a provider is called, and replies that
// are on their way hold back their last byte until their line is written.
import { existsSync } from "node:fs";
import { randomHex } from "../../../core/ids.ts";
import { ledgerUnavailable, type Opening } from "../../../core/ledger/ledger.ts";
import { ValidationError } from "../../../core/schema/checker.ts";
import { repeat, waitAtMost } from "../timers.ts";
import { createLogFault } from "./log-fault.ts";
import type { OpenRecord } from "./records.ts";
import { createRotation, type SpendLogOptions } from "./rotation.ts";
import type { SpendEntry } from "./segment.ts";

/**
 * How often the log is brought to the disk, rotated, and tried again if it could not be written.
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
   * Puts back segments and the gateway-id, if somebody has deleted or replaced them, before others
   * are read.
   */
  restore(): Promise<void>;
  /**
   * Opens a request, which must be settled whatever comes of it. Throws the 503 while the log is in
   * fault.
   */
  open(request: Omit<OpenRecord, "type" | "spend_id"> & Pick<Opening, "token">): SpendEntry;
  /** Why the log cannot be written; null if it can. */
  fault(): string | null;
  /** Waits for the last settle lines, and closes the segments. */
  close(): Promise<void>;
}

/** Creates a log. Nothing is written before it starts. */
export function createSpendLog(options: SpendLogOptions): SpendLog {
  const { dir, clock, diagnose } = options;
  const fault = createLogFault(diagnose);
  const rotation = createRotation(options, fault);
  let stopTicking = (): void => undefined;
  let ticking: Promise<void> | undefined;
  let isClosing = false;

  async function tick(): Promise<void> {
    try {
      for (const segment of rotation.all()) await rotation.restore(segment);
      await rotation.rotate();
      if (fault.current() !== null) {
        for (const segment of rotation.all()) segment.retry();
        fault.recovered();
      }
      await rotation.renewClaims();
      await Promise.all(rotation.all().map((segment) => segment.sync()));
      await rotation.closeSettled();
    } catch (error) {
      if (error instanceof ValidationError) throw error; // Such a data_dir can never be used.
      fault.failed(error);
    }
  }

  function tickOnce(): Promise<void> {
    ticking ??= tick().finally(() => {
      ticking = undefined;
    });
    return ticking;
  }

  return {
    async start() {
      await tick();
      fault.started();
      stopTicking = repeat(clock, TICK_MS, tickOnce);
    },
    async restore() {
      if (isClosing) return;
      if (rotation.all().some((segment) => segment.isLost())) await tickOnce();
      if (rotation.gatewayId() !== undefined && existsSync(dir)) rotation.prepareFolder();
    },
    open(request) {
      const current = rotation.current();
      if (fault.current() !== null || !current) throw ledgerUnavailable();
      // Each field is named: copying the object would take longer than everything else here.
      return current.open({
        type: "open",
        spend_id: `sp_${rotation.gatewayId()?.slice(0, 8)}${request.token ?? randomHex(12)}`,
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
    async close() {
      isClosing = true;
      stopTicking();
      await ticking;
      const allSettled = Promise.all(rotation.all().map((segment) => segment.whenSettled()));
      await waitAtMost(clock, LAST_SETTLES_MS, allSettled);
      for (const segment of rotation.takeAll()) {
        if (segment.size() > 0 || segment.unsettled() > 0)
          await rotation.restore(segment).catch(fault.failed);
        segment.close();
      }
    },
  };
}
