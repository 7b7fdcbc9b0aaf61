// Books that several parts of one process use: the ledger of a gateway, receipts, the console's
// costs. They share what is held in memory of open days and segments, and the passes that copy.
import type { Config } from "../../../core/config.ts";
import { openBooks, type BooksFiles, type BooksOptions } from "./books-files.ts";
import { syncUsage, type SyncResult } from "./sync.ts";

/** How long a pass waits for another process that works on the books. */
const PATIENCE_MS = 5_000;

/** The books of a process, for one of its parts. */
export interface SharedBooks {
  /** The same object for all parts. */
  readonly files: BooksFiles;
  /**
   * Copies everything that is settled by now. Calls that come before a pass has begun share it.
   * Rejects with a BusyError if another process works on the books for too long, and with what is
   * wrong with the books.
   */
  copyNow(): Promise<SyncResult>;
  /** This part is done with them. The last part frees connections and files. */
  close(): Promise<void>;
}

/** The books that are open in this process, and how many parts use them. */
interface OpenBooks {
  readonly files: BooksFiles;
  readonly copyNow: () => Promise<SyncResult>;
  users: number;
}

/** By the configuration at the start, which all parts of a gateway have as the same object. */
const opened = new WeakMap<Config, OpenBooks>();

/** Opens the books of a gateway as openBooks(), or shares those that another part has opened. */
export function shareBooks(config: Config, options: BooksOptions): SharedBooks {
  const books = opened.get(config) ?? open(config, options);
  books.users += 1;
  let isClosed = false;
  return {
    files: books.files,
    copyNow: books.copyNow,
    async close() {
      if (isClosed) return;
      isClosed = true;
      books.users -= 1;
      if (books.users > 0) return;
      if (opened.get(config) === books) opened.delete(config);
      await books.files.store.close();
    },
  };
}

function open(config: Config, options: BooksOptions): OpenBooks {
  const files = openBooks(config, options);
  const books: OpenBooks = { files, copyNow: createCopier(files), users: 0 };
  opened.set(config, books);
  return books;
}

/** As SharedBooks.copyNow. */
function createCopier(files: BooksFiles): () => Promise<SyncResult> {
  let last: Promise<unknown> = Promise.resolve();
  /** The pass that has not begun. What is settled after its beginning it may not see. */
  let next: Promise<SyncResult> | undefined;

  function queue(): Promise<SyncResult> {
    const begun = (): void => {
      if (next === mine) next = undefined;
    };
    const pass = (): Promise<SyncResult> =>
      files.locked(() => {
        begun();
        return syncUsage(files);
      }, PATIENCE_MS);
    const mine = last
      .catch(() => undefined)
      .then(pass)
      .finally(begun);
    return mine;
  }

  return () => {
    if (!next) {
      next = queue();
      last = next;
    }
    return next;
  };
}
