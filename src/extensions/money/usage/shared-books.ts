// Books that several parts of one process share: the ledger of a gateway, receipts, the console's
// costs. They share the memory of open days and segments, and the passes.
import type { Config } from "../../../core/config.ts";
import { BusyError } from "../../scale/data-files/index.ts";
import type { StoreFault } from "../records/index.ts";
import { openBooks, type BooksFiles, type BooksOptions } from "./books-files.ts";
import { syncUsage, type SyncResult } from "./sync.ts";

/** How long a pass waits for the lock of the books. */
const PATIENCE_MS = 5_000;

/** The books of a process. */
export interface SharedBooks {
  /** The files, the store and the clock. */
  readonly files: BooksFiles;
  /**
   * Copies everything that is settled by now. Calls that come before a pass has begun share it.
   * Rejects with a BusyError if another process holds the lock for too long, or with the error of
   * the pass. Reports each fault to the operator once, and its end.
   */
  copyNow(): Promise<SyncResult>;
  /** The fault of the last pass. Null: it had none. */
  syncFault(): string | null;
  /** How long ago the last successful pass began, in milliseconds. Infinity: there was none. */
  lagMs(): number;
  /** Ends the use by one part. The last part to call it frees connections and files. */
  close(): Promise<void>;
}

/** Open books, and how many parts of the process use them. */
interface OpenBooks extends SharedBooks {
  users: number;
}

/** By the configuration at the start, which is the same object for all parts of a gateway. */
const opened = new WeakMap<Config, OpenBooks>();

/** Opens the books of a gateway as openBooks(), or returns those that another part has opened. */
export function shareBooks(config: Config, options: BooksOptions): SharedBooks {
  const books = opened.get(config) ?? open(config, options);
  opened.set(config, books);
  books.users += 1;
  return books;
}

function open(config: Config, options: BooksOptions): OpenBooks {
  const files = openBooks(config, { ...options, recovers: true });
  const { clock, diagnose } = files;
  let last: Promise<unknown> = Promise.resolve();
  /** The pass that is waiting to begin. Later calls share it until it begins. */
  let next: Promise<SyncResult> | undefined;
  let copiedAt = -Infinity; // An earlier process may have left any amount to copy.
  /** The faults of the previous pass, which are not reported again. */
  let known: readonly string[] = [];

  async function pass(): Promise<SyncResult> {
    next = undefined;
    const began = clock.monotonic();
    try {
      const result = await files.locked(() => syncUsage(files), PATIENCE_MS);
      copiedAt = began;
      report(result.faults);
      return result;
    } catch (error) {
      const detail = `the spend log is not copied: ${(error as Error).message}`;
      // A BusyError is no fault: the process that holds the lock copies.
      if (!(error instanceof BusyError)) report([{ event: "usage_sync_failed", detail }]);
      throw error;
    }
  }

  function report(faults: readonly StoreFault[]): void {
    for (const { event, detail } of faults)
      if (!known.includes(detail)) diagnose({ event, level: "error", detail });
    if (known.length > 0 && faults.length === 0)
      diagnose({ event: "usage_sync_recovered", level: "info" });
    known = faults.map(({ detail }) => detail);
  }

  const books: OpenBooks = {
    users: 0,
    files,
    copyNow() {
      if (!next) {
        next = last.then(pass, pass);
        last = next;
      }
      return next;
    },
    syncFault: () => known[0] ?? null,
    lagMs: () => clock.monotonic() - copiedAt,
    async close() {
      books.users -= 1;
      if (books.users > 0) return;
      opened.delete(config);
      await files.store.close();
    },
  };
  return books;
}
