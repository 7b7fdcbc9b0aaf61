// Opens the books of one data_dir, for the gateway and for commands. An extension may sign the
// lines of their days, and statements. Without such an extension they are not signed.
import { join, resolve } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { slot, type GatewayContext } from "../../../core/extension/installer.ts";
import { withLock } from "../../scale/data-files/index.ts";
import { usageStoreSlot, type UsageStore } from "../records/index.ts";
import { createDays, type Days } from "../days/index.ts";
import { createFileStore } from "../file-store/index.ts";
import type { SegmentReader } from "./segment-reader.ts";
import { hasFileStore, spend, usage } from "./settings.ts";

/** The books of a data_dir. */
export interface BooksFiles {
  /** The absolute path of data_dir. */
  readonly dataDir: string;
  /** The folder of the spend log's segments. Its path is absolute. */
  readonly spendDir: string;
  /** The usage records, in files or in a database. */
  readonly store: UsageStore;
  /** The closed days. */
  readonly days: Days;
  /** Signs days and statements. Undefined: seals are disabled. */
  readonly signer: Signer | undefined;
  /** The currency of bills, three capital letters. */
  readonly currency: string;
  /** As spend.keep_days of the configuration. */
  readonly keepDays: number;
  /**
   * The readers of the segments that may still change, by file name. A reader is removed when its
   * segment has no writer and is copied and settled to its end.
   */
  readonly openSegments: Map<string, SegmentReader>;
  /** Whether this process serves, and so settles the open requests of dead processes. */
  readonly recovers: boolean;
  /**
   * Does work under the lock of the books. Rejects with a BusyError if another process holds it for
   * `patienceMs`; absent: a minute.
   */
  locked<T>(work: () => Promise<T>, patienceMs?: number): Promise<T>;
  /** Dates interrupted requests and closed days. Its timers limit the wait for the lock. */
  readonly clock: Clock;
  /** Reports closed days, and the beginning and end of faults, to the operator. */
  readonly diagnose: Diagnose;
}

/** What an account owes for a month, as `billing statement --json` prints it. */
export interface StatementToSeal {
  /** As UsageRecord.account. */
  readonly account: string;
  /** `YYYY-MM`, in UTC: the month of UsageRecord.day. */
  readonly month: string;
  /** Three capital letters. Only records in this currency are in its sums. */
  readonly currency: string;
  /** The sums of these records. The proof needs only the cost. */
  readonly total: {
    /** In `currency`, as a decimal text. */
    readonly cost: string;
  };
}

/** Signs for one data_dir. */
export interface Signer {
  /** The public key, 64 hex digits. Reading it makes the key if there is none. */
  readonly publicHex: string;
  /** Adds the last member `signature` to the text of a JSON object with at least one member. */
  sign(json: string): string;
  /** Signs the SHA-256 of the text of a JSON object. Returns 128 hex digits. */
  signatureOf(digest: Buffer): string;
  /**
   * Prints a statement with its records and their proof, as one line of JSON. Calls `makeBill`
   * under the lock of the books, so that no pass runs meanwhile. `print` resolves when its output
   * can take more.
   */
  printStatement(
    books: BooksFiles,
    makeBill: () => Promise<StatementToSeal>,
    print: (text: string) => Promise<void>,
  ): Promise<void>;
}

/**
 * Opens the signer of a data_dir. Undefined: the configuration disables it. Changes nothing on the
 * disk. Empty: nothing is signed.
 */
export const signerSlot = slot<(config: Config, dataDir: string) => Signer | undefined>("signer");

/** What the books need besides the configuration. `installed` may have a store and a signer. */
export interface BooksOptions extends Pick<GatewayContext, "clock" | "diagnose" | "installed"> {
  /** As BooksFiles.recovers. Absent: false, as for commands, which write no log. */
  readonly recovers?: boolean;
}

/**
 * Opens the books of a configuration. Changes nothing on the disk. Throws a ValidationError if the
 * package that the store needs is not installed.
 */
export function openBooks(config: Config, options: BooksOptions): BooksFiles {
  const { clock, diagnose, installed, recovers = false } = options;
  // Absolute paths: if the working directory was deleted, Node 20's recursive mkdir of a relative
  // path never returns.
  const dataDir = resolve(config.data_dir);
  const days = createDays(join(dataDir, "days.jsonl"));
  const spendDir = join(dataDir, "spend");
  return {
    dataDir,
    spendDir,
    // The slot is filled: the configuration was rejected otherwise.
    store: hasFileStore(config)
      ? createFileStore(join(dataDir, "usage"), days)
      : installed.filled(usageStoreSlot)!(usage.of(config).store, config.data_dir),
    days,
    signer: installed.filled(signerSlot)?.(config, dataDir),
    currency: config.currency,
    keepDays: spend.of(config).keep_days,
    openSegments: new Map(),
    recovers,
    locked: (work, patienceMs) =>
      withLock({ dir: spendDir, name: "books", patienceMs, clock }, work),
    clock,
    diagnose,
  };
}
