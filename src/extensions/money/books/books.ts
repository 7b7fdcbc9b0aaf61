// The books as an extension. Every request gets an open line in the spend log before a provider is
// called, and a settle line with its cost afterwards. In the background, the usage sync copies
// settled requests into the usage store.
import { beforeServing, programSlots } from "../../../command-line/command.ts";
import { configHooks } from "../../../config/extension.ts";
import { DAY_MS } from "../../../config/fields.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { GatewayContext, Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import type { Ledger } from "../../../core/ledger/ledger.ts";
import { dataDirIssues, makeDataDir } from "../../scale/data-files/index.ts";
import { passwordsIn } from "../../scale/stores/index.ts";
import { createSpendLog, repeat, segmentName, waitAtMost } from "../ledger/index.ts";
import { dayOf } from "../records/index.ts";
import { BooksFault, hasFileStore, openBooks, shareBooks, spend, usage } from "../usage/index.ts";
import { usageSyncCommand } from "./usage-sync-command.ts";

export const settings = [spend, usage];

export function install(gateway: Installer): void {
  gateway.fill(slots.ledger, createBooks);
  gateway.fill(programSlots.command("usage sync"), usageSyncCommand);
  gateway.on(beforeServing, ({ data_dir }) => makeDataDir(data_dir));
  gateway.on(hooks.secrets, (config) => passwordsIn(usage.of(config).store));
  gateway.on(hooks.status, statusOf);
  gateway.on(configHooks.hostIssues, dataDirIssues);
  gateway.on(configHooks.assertReady, (config, installed) => {
    const options = { clock: systemClock, diagnose: () => undefined, installed };
    openBooks(config, options).store.close();
  });
}

/** The books of all processes, for GET /status. */
function statusOf(reports: readonly unknown[], config: Config): object {
  const all = reports as readonly BooksStatus[];
  return {
    spend: { fault: all.find(({ spendFault }) => spendFault !== null)?.spendFault ?? null },
    usage: {
      store: hasFileStore(config) ? "file" : "postgres",
      fault: all.find(({ syncFault }) => syncFault !== null)?.syncFault ?? null,
      lag_seconds: Math.min(...all.map(({ lagMs }) => lagMs)) / 1000,
    },
  };
}

/**
 * How long opening waits for the first sync, and closing for the last. A database that is down must
 * not hold up requests. The next process copies the rest.
 */
const SYNC_WAIT_MS = 5_000;
/** How long the first segment waits until the store has returned the names in use. */
const NAMES_WAIT_MS = 500;

/**
 * A segment's name with a number that no earlier segment has: regular numbers are counted from 1,
 * and these have five digits and grow by one each second of the day.
 */
const unusedName = (now: number): string =>
  segmentName(dayOf(now), 10_000 + Math.floor((now % DAY_MS) / 1_000));

/** The state of the books in one process. */
interface BooksStatus {
  /** Why the spend log cannot be written and requests are refused. Null: it can be written. */
  readonly spendFault: string | null;
  /** The fault of the last sync. Null: it had none. */
  readonly syncFault: string | null;
  /**
   * Everything settled longer ago than this, in milliseconds, is in the usage records. Infinity
   * before the first sync.
   */
  readonly lagMs: number;
}

/**
 * Creates the ledger of a gateway, with its background passes. Opening it settles the open requests
 * of dead processes. Faults are in the report, a BooksStatus. Throws a ValidationError if the
 * package that the store needs is missing.
 */
function createBooks(context: GatewayContext): Ledger {
  const { config, clock, diagnose, on } = context;
  const books = shareBooks(config, context);
  const { files } = books;
  const log = createSpendLog({
    dataDir: files.dataDir,
    segmentBytes: spend.of(config).segment_bytes,
    clock,
    diagnose,
    namesTaken: () => [
      ...files.days.all().flatMap(({ closed }) => closed.segments.map(({ segment }) => segment)),
      ...namesCopied,
    ],
    // Another process has settled the open requests of this one, which must end at once.
    fenced: (message) => {
      queueMicrotask(() => {
        throw new Error(message);
      });
    },
  });
  let stopSyncing = (): void => undefined;
  /**
   * The names of the segments that the cursor had at the start. Until the store has returned them,
   * a name with a number higher than any of theirs, so that the first segment does not reuse one.
   */
  let namesCopied: readonly string[] = [unusedName(clock.now())];

  /** Never rejects: the first sync meets the same error and reports it. */
  const readNames = (): Promise<void> =>
    files.store.cursor().then(
      (cursor) => {
        namesCopied = Object.keys(cursor);
      },
      () => undefined,
    );

  /** Never rejects: `books` reports the error. */
  async function sync(): Promise<void> {
    try {
      await books.copyNow();
    } catch (error) {
      if (error instanceof BooksFault) log.fail(error.message);
    }
  }

  on("open", async () => {
    await waitAtMost(clock, NAMES_WAIT_MS, readNames());
    await log.start();
    await waitAtMost(clock, SYNC_WAIT_MS, sync());
    stopSyncing = repeat(clock, usage.of(config).sync_ms, sync);
  });
  on(
    "report",
    (): BooksStatus => ({
      spendFault: log.fault(),
      syncFault: books.syncFault(),
      lagMs: books.lagMs(),
    }),
  );
  on("close", async () => {
    stopSyncing();
    await log.close();
    await waitAtMost(clock, SYNC_WAIT_MS, sync().then(books.close));
  });
  return log;
}
