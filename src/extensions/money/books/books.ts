// The books as an extension. Every request that goes to a provider is opened in the spend log
// before, and settled in it after, with what it cost. In the background the usage sync copies
// settled requests into the usage store.
import { beforeServing, programSlots } from "../../../command-line/command.ts";
import { configMoments } from "../../../config/extension.ts";
import { DAY_MS } from "../../../config/fields.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { GatewayContext, Installer } from "../../../core/extension/installer.ts";
import { moments, slots } from "../../../core/extension/places.ts";
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
  gateway.on(moments.secrets, (config) => passwordsIn(usage.of(config).store));
  gateway.on(moments.status, statusOf);
  gateway.on(configMoments.issuesHere, dataDirIssues);
  gateway.on(configMoments.assertReady, (config, installed) => {
    const options = { clock: systemClock, diagnose: () => undefined, installed };
    openBooks(config, options).store.close();
  });
}

/** The books of all processes, as GET /status has them. */
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
 * How long opening waits for the first sync, because a database that is down must not hold requests
 * up, and closing for the last. The next process copies the rest.
 */
const SYNC_WAIT_MS = 5_000;
/** How long the first segment waits for the names that are taken. */
const NAMES_WAIT_MS = 500;

/**
 * A segment's name whose number no earlier segment has: those that are counted begin with 1, and
 * these, in five digits, grow by one each second of the day.
 */
const unusedName = (now: number): string =>
  segmentName(dayOf(now), 10_000 + Math.floor((now % DAY_MS) / 1_000));

/** How the books are at the moment. */
interface BooksStatus {
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

/**
 * The books that a configuration names: the ledger of a gateway. Opening them settles what dead
 * processes have left open; it rejects with a ValidationError if data_dir can never be used, and
 * anything that may pass is in the report, a BooksStatus. Throws a ValidationError if the package
 * that the store needs is missing.
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
    // Another process has settled what this one has open: it must not go on.
    fenced: (message) => {
      queueMicrotask(() => {
        throw new Error(message);
      });
    },
  });
  let stopSyncing = (): void => undefined;
  /**
   * The segments of which records are there, as they were before this process wrote any. Until the
   * store has told them: a name that none of them can have.
   */
  let namesCopied: readonly string[] = [unusedName(clock.now())];

  /** Resolves whatever goes wrong: the first sync meets it too. */
  const readNames = (): Promise<void> =>
    files.store.cursor().then(
      (cursor) => {
        namesCopied = Object.keys(cursor);
      },
      () => undefined,
    );

  /** Resolves whatever goes wrong: the books report it. */
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
