// The books of a running gateway: every request that goes to a provider is opened in the spend log before, and settled in
// it after, with what it cost; in the background the usage sync copies what was settled. DESIGN.md "Files under data_dir".
import { setTimeout as pause } from "node:timers/promises";
import type { Caller } from "../../core/accounts/keys.ts";
import type { Config } from "../../core/config/schema.ts";
import type { Diagnose } from "../../core/http/log.ts";
import { settleRecord, type Outcome, type SettleRecord } from "./records.ts";
import type { StoreFault } from "./usage-store.ts";
import { createSpendLog } from "./spend-log.ts";
import { recover } from "./recovery.ts";
import { BusyError, withLock, ledgerOf, syncUsage } from "./sync.ts";

const LAST_SYNC_MS = 5_000; // what the last sync has not copied by then the next process will
/** What is known of a request when it begins; `model` as it was asked for: a canonical name or an alias. */
type Opening = { readonly caller: Caller; readonly stream: boolean } & {
  readonly [name in "requestId" | "model" | "currency"]: string;
};
export type Books = ReturnType<typeof createBooks>;
/** `told` hears of every request that is settled. */
export function createBooks(
  config: Config,
  now: () => number,
  diagnose: Diagnose,
  told: (record: SettleRecord) => void,
) {
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

  return {
    /** Opens the spend log, recovers what dead processes left, starts the sync. What fails for the time being is in `status`. */
    async start(): Promise<void> {
      await log.start();
      await tend(recoverOnly);
      syncSoon();
      timer = setInterval(syncSoon, config.usage.sync_ms).unref();
    },
    /** The bill of one request. Throws the 503 of a gateway that cannot write its books. */
    open({
      requestId,
      caller: { account, keyId },
      model: model_requested,
      stream,
      currency,
    }: Opening) {
      const entry = log.open({
        time: new Date(now()).toISOString(),
        gateway_request_id: requestId,
        account,
        key_id: keyId,
        model_requested,
        stream,
      });
      let settled: Promise<void> | undefined;
      let record: SettleRecord | undefined;
      return {
        /** Resolves when the provider may be called; rejects with the 503. */
        opened: entry.opened,
        /** Resolves when the last byte of the reply may leave. Only the first call counts. */
        settle(outcome: Outcome): Promise<void> {
          if (settled) return settled;
          record = settleRecord(entry.record, now(), outcome, currency);
          told(record);
          settled = entry.settle(record);
          return settled;
        },
        /** What was settled; undefined before. */
        record: () => record,
      };
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
