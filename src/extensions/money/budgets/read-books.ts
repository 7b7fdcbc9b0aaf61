// Reads from the books what was spent before this process began to count, and the cost of requests
// that a dead worker had in flight.
import { DAY_MS } from "../../../config/fields.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { waitAtMost } from "../ledger/index.ts";
import { copySettled, openBooks, type BooksFiles } from "../usage/index.ts";
import { dayOf, isoTime, parseMoney } from "../records/index.ts";
import type { Spent } from "./spend-counters.ts";

/** Milliseconds between a failure to read the books and the next attempt. */
const RETRY_MS = 1_000;
/** How long a request waits for the books, in milliseconds: a database may hang. */
const PATIENCE_MS = 5_000;
/** Where Opening.holdId begins in a spend_id: after `sp_` and 8 digits of the gateway's id. */
const HOLD_ID_AT = "sp_".length + 8;

/** What a settled request cost and used. */
export interface Outcome extends Spent {
  /** The tokens of the prompt and the reply. */
  readonly tokens: number;
}

/** What openBooks() needs. */
export type ReadingContext = Pick<GatewayContext, "config" | "installed" | "clock" | "diagnose">;

/** Copies settled requests into the usage records, calls `work` with the books, and closes them. */
export async function readBooks<T>(
  context: ReadingContext,
  work: (books: BooksFiles) => Promise<T>,
): Promise<T> {
  const books = openBooks(context.config, context);
  const read = copySettled(books).then(() => work(books));
  return await read.finally(books.store.close);
}

/**
 * Reads what was spent, by day, account and key. `ownOnly`: leave out the gateways of other
 * data_dirs. `before`: leave out requests that ended at this moment or later, in ISO 8601; absent:
 * read all. What was spent before the current month, and before that of the last record, is added
 * up under the day "", because it counts only in total: there may be thousands of days.
 */
export async function readSpent(
  { store, currency, clock }: BooksFiles,
  ownOnly: boolean,
  before?: string,
): Promise<readonly Spent[]> {
  const lastDay = before?.slice(0, 10) ?? "9999";
  const ends = [dayOf(clock.now()), lastDay, ...(await store.days()).slice(-1)].sort();
  const month = `${ends[0]!.slice(0, 7)}-01`;
  const by = ["account", "key_id", "currency"] as const;
  const earlier = await store.sums({ ownOnly, to: dayOf(Date.parse(month) - DAY_MS) }, by);
  const later = await store.sums({ ownOnly, from: month }, ["day", ...by]);
  const sums = [...earlier.map((sum) => ({ ...sum, day: "" })), ...later];
  const spent: Spent[] = sums.filter((sum) => sum.currency === currency && sum.day < lastDay);
  if (before === undefined) return spent;
  // The stored sum of that day would include requests that ended later.
  for await (const records of store.records({ day: lastDay, ownOnly }))
    for (const { account, key_id, cost, ...record } of records)
      if (record.ended_at < before && record.currency === currency)
        spent.push({ account, key_id, day: lastDay, cost: parseMoney(cost) });
  return spent;
}

/** Reads the outcomes of requests that ended a moment ago, by Opening.holdId, if they have any. */
export async function readOutcomes(
  { store, clock }: BooksFiles,
  holdIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const from = dayOf(clock.now() - DAY_MS);
  for await (const records of store.records({ from, ownOnly: true }))
    for (const { usage_id, account, key_id, day, cost, total_tokens } of records) {
      const holdId = usage_id.slice(HOLD_ID_AT);
      const outcome = { account, key_id, day, cost: parseMoney(cost), tokens: total_tokens };
      if (holdIds.has(holdId)) outcomes.set(holdId, outcome);
    }
  return outcomes;
}

/** What was spent before this process began to count. */
export interface OpeningSpend {
  /** Whether the books have been read. */
  isKnown(): boolean;
  /**
   * Reads the books unless they have been read, or a failure was less than RETRY_MS ago. Resolves
   * with isKnown(), after PATIENCE_MS at most. `isFirst`: this process has counted nothing yet, so
   * all records are read.
   */
  ensureKnown(isFirst?: boolean): Promise<boolean>;
}

/** Calls `onSpent` once, with what was spent. Reports a failure, and its end, to the operator. */
export function createOpeningSpend(
  context: ReadingContext,
  onSpent: (spent: readonly Spent[]) => Promise<void>,
): OpeningSpend {
  const { clock, diagnose } = context;
  const startedAt = isoTime(clock.now());
  let isKnown = false;
  let isFailing = false;
  let reading: Promise<void> | undefined;
  let retryAt = -Infinity;

  function fail(reason: string): void {
    const detail = `requests with a budget are refused: ${reason}`;
    if (!isFailing) diagnose({ event: "budgets_unknown", level: "error", detail });
    isFailing = true;
  }

  async function read(before: string | undefined): Promise<void> {
    try {
      let spent = await readBooks(context, (books) => readSpent(books, true, before));
      // Reading took so long that this process has served and counted requests meanwhile.
      if (isFailing && before === undefined)
        spent = await readBooks(context, (books) => readSpent(books, true, startedAt));
      isKnown = true;
      await onSpent(spent);
      if (isFailing) diagnose({ event: "budgets_known", level: "info" });
    } catch (error) {
      fail((error as Error).message);
      retryAt = clock.monotonic() + RETRY_MS;
    }
    reading = undefined;
  }

  return {
    isKnown: () => isKnown,
    async ensureKnown(isFirst = false) {
      if (!isKnown && clock.monotonic() >= retryAt)
        reading ??= read(isFirst ? undefined : startedAt);
      const isRead = !reading || (await waitAtMost(clock, PATIENCE_MS, reading));
      if (!isRead) fail(`the books were not read within ${PATIENCE_MS / 1_000} seconds`);
      return isKnown;
    },
  };
}
