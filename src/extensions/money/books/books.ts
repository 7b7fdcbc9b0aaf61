// The books of a running gateway. Every request that goes to a provider is opened in the spend log
// before, and settled in it after, with what it cost. In the background the usage sync copies
// settled requests into the usage store.
import type { Config } from "../../../core/config.ts";
import { BusyError } from "../../data-files/index.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Ledger } from "../../../core/ledger/ledger.ts";
import { createSpendLog, repeat, spend, waitAtMost } from "../ledger/index.ts";
import { isoTime, settleText, type StoreFault } from "../records/index.ts";
import {
  BooksFault,
  shareBooks,
  usage,
  type BooksFiles,
  type BooksOptions,
  type SharedBooks,
} from "../usage/index.ts";

/** How long start() waits for the first sync. A database that is down must not hold requests up. */
const FIRST_SYNC_MS = 5_000;
/** How long close() waits for the last sync. What is not copied by then the next process copies. */
const LAST_SYNC_MS = 5_000;

/** How the books are at the moment. */
export interface BooksStatus {
  /** Why the spend log cannot be written, so that requests are refused. Null: it can. */
  readonly spendFault: string | null;
  /** What was wrong with the last sync. Null: nothing. */
  readonly syncFault: string | null;
  /**
   * Everything settled longer ago than this, in milliseconds, is in the usage records. Infinity
   * before the first sync.
   */
  readonly lagMs: number;
}

/** The ledger of a gateway with books, and what starts and stops it. */
export interface Books extends Ledger {
  /**
   * Opens the spend log, settles what dead processes have left open, and starts the sync. Rejects
   * with a ValidationError if data_dir can never be used. Anything that may pass is in `status`.
   */
  start(): Promise<void>;
  /** How they are at this moment. */
  status(): BooksStatus;
  /** Waits for the last settle lines, runs a last sync, and closes all files. */
  close(): Promise<void>;
}

/**
 * The books that a configuration names. Throws a ValidationError if the package that the store
 * needs is missing.
 */
export function createBooks(config: Config, options: BooksOptions): Books {
  const { clock, diagnose } = options;
  const books = shareBooks(config, options);
  const { files } = books;
  const log = createSpendLog({
    dir: files.spendDir,
    dataDir: files.dataDir,
    segmentBytes: spend.of(config).segment_bytes,
    clock,
    diagnose,
    namesTaken: () => namesTaken(files),
    // Another process has settled what this one has open: it must not go on.
    fenced: (message) => {
      queueMicrotask(() => {
        throw new Error(message);
      });
    },
  });
  files.ownSegments = () => log.ownSegments();
  const background = createBackgroundSync(books, log.fail);
  let stopSyncing = (): void => undefined;

  return {
    open({ requestId, account, keyId, modelRequested, stream, hold, token }) {
      const entry = log.open({
        time: isoTime(clock.now()),
        gateway_request_id: requestId,
        account,
        key_id: keyId,
        model_requested: modelRequested,
        stream,
        hold,
        token,
      });
      let settled: Promise<void> | undefined;
      return {
        opened: entry.opened,
        settle(settlement) {
          settled ??= entry.settle(settleText(entry.record, clock.now(), settlement));
          return settled;
        },
      };
    },
    fault: log.fault,
    async start() {
      await log.start();
      await waitAtMost(clock, FIRST_SYNC_MS, background.syncOnceMore());
      stopSyncing = repeat(clock, usage.of(config).sync_ms, background.syncSoon);
    },
    status: () => ({
      spendFault: log.fault(),
      syncFault: background.fault(),
      lagMs: background.lagMs(),
    }),
    async close() {
      stopSyncing();
      await log.close();
      const lastSync = background.syncOnceMore().then(books.close);
      await waitAtMost(clock, LAST_SYNC_MS, lastSync);
    },
  };
}

/** The names of all segments that there ever were, as far as it is known. */
async function namesTaken({ store, days }: BooksFiles): Promise<readonly string[]> {
  const closed = days.all().flatMap(({ closed: { segments } }) => segments);
  // A database may be out of reach: the folder and the closed days know what is older.
  const cursor = await store.cursor().catch(() => ({}));
  return [...closed.map(({ segment }) => segment), ...Object.keys(cursor)];
}

/**
 * The usage sync of a running gateway. Each method resolves, whatever goes wrong: faults are
 * reported once.
 */
interface BackgroundSync {
  /** Begins a pass, unless one is under way. */
  syncSoon(): void;
  /** Waits for a pass that begins from now on. */
  syncOnceMore(): Promise<void>;
  /** What was wrong with the last pass; null: nothing. */
  fault(): string | null;
  /** How long ago the last whole pass began, in milliseconds. */
  lagMs(): number;
}

/** `broken` is told once that a file of the books is not as it was left. */
function createBackgroundSync(
  { files: { clock, diagnose }, copyNow }: SharedBooks,
  broken: (reason: string) => void,
): BackgroundSync {
  const faults = createFaultReports(diagnose);
  // An earlier process may have left any amount. Both clocks are asked: the wall clock may be set
  // back, and would hide a lag.
  let syncedAt = { wall: -Infinity, monotonic: -Infinity };
  let isSyncing = false;

  async function pass(): Promise<void> {
    const began = { wall: clock.now(), monotonic: clock.monotonic() };
    try {
      const result = await copyNow();
      syncedAt = began;
      faults.worked(result.faults);
    } catch (error) {
      if (error instanceof BooksFault) broken(error.message);
      // Another process works on the books: that one copies.
      if (!(error instanceof BusyError)) faults.failed((error as Error).message);
    }
  }

  return {
    syncSoon() {
      if (isSyncing) return;
      isSyncing = true;
      pass().finally(() => {
        isSyncing = false;
      });
    },
    syncOnceMore: pass,
    fault: faults.current,
    lagMs: () => Math.max(0, clock.now() - syncedAt.wall, clock.monotonic() - syncedAt.monotonic),
  };
}

/**
 * What is wrong with the sync, and what the operator hears of it: each fault once, and that it is
 * over.
 */
interface FaultReports {
  /** What was wrong with the last pass; null: nothing. */
  current(): string | null;
  /** A pass has come to its end, and has worked around these faults. */
  worked(faults: readonly StoreFault[]): void;
  /** A pass has failed. */
  failed(message: string): void;
}

function createFaultReports(diagnose: Diagnose): FaultReports {
  let current: string | null = null;
  /** The faults of the pass before. */
  let known: readonly string[] = [];
  /** Whether the pass before has failed: a fault that is worked around must not hide that. */
  let isFailing = false;
  return {
    current: () => current,
    worked(faults) {
      for (const { event, detail } of faults) {
        if (!known.includes(detail)) diagnose({ event, level: "error", detail });
      }
      known = faults.map(({ detail }) => detail);
      const [first] = faults;
      if (current !== null && !first) diagnose({ event: "usage_sync_recovered", level: "info" });
      current = first?.detail ?? null;
      isFailing = false;
    },
    failed(message) {
      const detail = `the spend log waits: ${message}`;
      if (!isFailing) diagnose({ event: "usage_sync_failed", level: "error", detail });
      current = message;
      isFailing = true;
    },
  };
}
