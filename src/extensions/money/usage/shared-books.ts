// Books that several parts of one process use: the ledger of a gateway, receipts, the console's
// costs. They share what is held in memory of open days and segments, and the passes that copy.
import type { Config } from "../../../core/config.ts";
import { BusyError } from "../../scale/data-files/index.ts";
import type { StoreFault } from "../records/index.ts";
import { openBooks, type BooksFiles, type BooksOptions } from "./books-files.ts";
import { syncUsage, type SyncResult } from "./sync.ts";

/** How long a pass waits for another process that works on the books. */
const PATIENCE_MS = 5_000;

/** The books of a process. */
export interface SharedBooks {
  /** The files, the store and the clock. */
  readonly files: BooksFiles;
  /**
   * Copies everything that is settled by now. Calls that come before a pass has begun share it.
   * Rejects with a BusyError if another process works on the books for too long, and with what is
   * wrong with the books. The operator is told of each fault once, and that it is over.
   */
  copyNow(): Promise<SyncResult>;
  /** What was wrong with the last pass; null: nothing. */
  syncFault(): string | null;
  /** How long ago the last whole pass began, in milliseconds. Infinity: there was none. */
  lagMs(): number;
  /** This part is done with them. The last part frees connections and files. */
  close(): Promise<void>;
}

/** The books that are open in this process, and how many parts use them. */
interface OpenBooks extends SharedBooks {
  users: number;
}

/** By the configuration at the start, which all parts of a gateway have as the same object. */
const opened = new WeakMap<Config, OpenBooks>();

/** Opens the books of a gateway as openBooks(), or shares those that another part has opened. */
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
  /** The pass that has not begun. What is settled after its beginning it may not see. */
  let next: Promise<SyncResult> | undefined;
  let copiedAt = -Infinity; // An earlier process may have left any amount.
  /** The faults of the pass before. */
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
      const detail = `the spend log waits: ${(error as Error).message}`;
      // Another process works on the books: that one copies.
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
