// Finds receipts: first among the requests that are settled and not copied yet, then in the usage
// records. In this order nothing is missed that is copied in between.
import { decisive, usageRecord, type BooksFiles, type SettleRecord } from "../books/index.ts";
import type { RequestQuery, UsageRecord } from "../usage-records/index.ts";
import { createFreshRequests } from "./fresh.ts";
import { receiptOf, type Receipt } from "./receipt.ts";

/** The receipts of some books. */
export interface Receipts {
  /** Begins to read what is not copied yet, so that the first search is fast. */
  warmUp(): void;
  /**
   * The latest receipts of a request id, in the order in which the requests ended. Rejects if the
   * books cannot be read.
   */
  find(query: RequestQuery): Promise<readonly Receipt[]>;
}

export function createReceipts(books: BooksFiles): Receipts {
  const fresh = createFreshRequests(books);

  async function freshRecords(query: RequestQuery): Promise<readonly UsageRecord[]> {
    const settles = new Map<string, SettleRecord>();
    for (const line of await fresh.find(query)) {
      const earlier = settles.get(line.spend_id);
      settles.set(line.spend_id, earlier ? decisive(earlier, line) : line);
    }
    return [...settles.values()].map(usageRecord);
  }

  return {
    warmUp() {
      // What goes wrong, the first search meets too, and reports.
      fresh.catchUp().catch(() => undefined);
    },
    async find(query) {
      const records = new Map<string, UsageRecord>();
      const recent = await freshRecords(query);
      for (const record of await books.store.find(query)) records.set(record.usage_id, record);
      for (const record of recent) {
        const stored = records.get(record.usage_id);
        // A request that its own process has settled stays so, whatever a recovery has written.
        if (!stored || stored.status === "interrupted") records.set(record.usage_id, record);
      }
      const latest = [...records.values()]
        .sort((a, b) => (a.ended_at < b.ended_at ? -1 : Number(a.ended_at > b.ended_at)))
        .slice(-query.limit);
      return latest.map((record) =>
        receiptOf(record, books.sealing?.proofOfRecord(record) ?? null),
      );
    },
  };
}
