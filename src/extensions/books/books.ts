// The books of a running gateway: every request that goes to a provider is opened in the spend log before, and settled in
// it after, with what it cost; in the background the usage sync copies what was settled. DESIGN.md "Files under data_dir".
import { setTimeout as pause } from "node:timers/promises";
import type { Config } from "../../core/config/schema.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type { Ledger as RequestLedger } from "../../core/ledger/ledger.ts";
import { settleRecord } from "./records.ts";
import type { StoreFault } from "./usage-store.ts";
import { createSpendLog } from "./spend-log.ts";
import { recover } from "./recovery.ts";
import { BusyError, withLock, ledgerOf, syncUsage } from "./sync.ts";

const LAST_SYNC_MS = 5_000; // what the last sync has not copied by then the next process will
export type Books = ReturnType<typeof createBooks>;
export function createBooks(config: Config, now: () => number, diagnose: Diagnose) {
  const ledger = ledgerOf(config, now, diagnose);
  const log = createSpendLog(ledger.dir, config.spend.segment_bytes, now, diagnose);
  // Nobody knows how much an earlier process has left. Two clocks: the wall clock may be set back, and would hide a lag.
  let syncedAt = { wall: -Infinity, monotonic: -Infinity };
  let syncFault: string | null = null;
  let timer: NodeJS.Timeout | undefined;
  let syncing: Promise<void> | undefined;

  /** Faults that the last pass found and worked around: each is told when it is new. */
  let knownFaults: readonly string[] = [];
  function tellFaults(faults: readonly StoreFault[]): void {
    for (const { event, detail } of faults) {
      if (!knownFaults.includes(detail)) diagnose({ event, level: "error", detail });
    }
    knownFaults = faults.map(({ detail }) => detail);
  }

  /** Does `work`, which resolves with the faults that it found, if no other process is at it; what goes wrong is told once, and so is
   * that it goes right again. */
  async function tend(work: () => Promise<readonly StoreFault[]>): Promise<void> {
    try {
      await log.restore(); // or what a restored copy says would be taken for all there is
      const faults = await withLock(ledger.dir, "books", work, 0);
      tellFaults(faults);
      const [fault] = faults;
      if (syncFault !== null && !fault) diagnose({ event: "usage_sync_recovered", level: "info" });
      syncFault = fault?.detail ?? null;
    } catch (error) {
      if (error instanceof BusyError) return;
      const { message } = error as Error;
      if (syncFault === null)
        diagnose({
          event: "usage_sync_failed",
          level: "error",
          detail: `the spend log waits: ${message}`,
        });
      syncFault = message;
    }
  }

  async function pass(): Promise<readonly StoreFault[]> {
    const began = { wall: now(), monotonic: performance.now() };
    const { faults } = await syncUsage(ledger);
    syncedAt = began;
    return faults;
  }
  async function recoverOnly(): Promise<readonly StoreFault[]> {
    await recover(ledger);
    ledger.retention.isClockSteady(); // a jump from here on will be noticed
    return [];
  }
  const syncSoon = () => {
    syncing ??= tend(pass).finally(() => (syncing = undefined));
  };

  const requestLedger: RequestLedger = {
    open({ requestId, account, keyId, modelRequested, stream }) {
      const entry = log.open({
        time: new Date(now()).toISOString(),
        gateway_request_id: requestId,
        account,
        key_id: keyId,
        model_requested: modelRequested,
        stream,
      });
      let settled: Promise<void> | undefined;
      return {
        opened: entry.opened,
        settle(settlement) {
          settled ??= entry.settle(settleRecord(entry.record, now(), settlement));
          return settled;
        },
      };
    },
    fault: () => log.fault(),
  };

  return {
    ...requestLedger,
    /** Opens the spend log, recovers what dead processes left, starts the sync. What fails for the time being is in `status`. */
    async start(): Promise<void> {
      await log.start();
      await tend(recoverOnly);
      syncSoon();
      timer = setInterval(syncSoon, config.usage.sync_ms).unref();
    },
    /** The faults are null while there is none. All that was settled longer ago than `lagMs` is in the usage records. */
    status: () => ({
      spendFault: log.fault(),
      syncFault,
      lagMs: Math.max(0, now() - syncedAt.wall, performance.now() - syncedAt.monotonic),
    }),
    async close(): Promise<void> {
      clearInterval(timer);
      await log.close();
      const lastSync = Promise.resolve(syncing)
        .then(() => tend(pass))
        .then(() => ledger.store.close());
      await Promise.race([lastSync, pause(LAST_SYNC_MS, undefined, { ref: false })]);
    },
  };
}
