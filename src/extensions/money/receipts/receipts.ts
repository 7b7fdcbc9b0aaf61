// Finds receipts: copies what was settled just now, then searches the usage records.
import { BusyError } from "../../data-files/index.ts";
import { waitAtMost } from "../ledger/index.ts";
import type { RequestQuery, UsageRecord } from "../records/index.ts";
import type { BooksFiles, SharedBooks } from "../usage/index.ts";
import { receiptOf, type Receipt } from "./receipt.ts";

/**
 * How long a search waits for the copying, in milliseconds. When a day closes it may take longer.
 */
const MOST_COPY_MS = 5_000;

/** The receipts of the books of a process. */
export interface Receipts {
  /** Reads what the first search needs, so that it is fast. */
  warmUp(): void;
  /**
   * The latest receipts of a request id, in the order in which the requests ended. Rejects if the
   * books cannot be read, or are not copied in time.
   */
  find(query: RequestQuery): Promise<readonly Receipt[]>;
}

export function createReceipts({ files, copyNow }: SharedBooks): Receipts {
  async function find(query: RequestQuery): Promise<readonly Receipt[]> {
    let isCopied = false;
    const copying = copyNow().then(() => {
      isCopied = true;
    });
    await waitAtMost(files.clock, MOST_COPY_MS, copying);
    if (!isCopied) throw new BusyError("copying what was settled takes too long");
    return receiptsOf(files, await files.store.find(query));
  }

  return {
    warmUp() {
      // What goes wrong, the first search meets too, and reports.
      find({ requestId: "", limit: 1 }).catch(() => undefined);
    },
    find,
  };
}

/** The receipts of records that UsageStore.find() has found. */
export function receiptsOf(books: BooksFiles, records: readonly UsageRecord[]): readonly Receipt[] {
  const closed = books.days.all();
  return records.map((record) => {
    const line = closed.find((other) => other.closed.day === record.day);
    return receiptOf(record, line ? { day: record.day, number: line.closed.number } : null);
  });
}
