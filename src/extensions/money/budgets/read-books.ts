// What the books tell: what was spent before this process began to count, and what requests came to
// that a dead worker had in flight.
import { DAY_MS } from "../../../config/fields.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { waitAtMost } from "../ledger/index.ts";
import { copySettled, openBooks, type BooksFiles } from "../usage/index.ts";
import { dayOf, parseMoney } from "../records/index.ts";
import type { Spent } from "./purses.ts";

/** How long after a failure the books are not read again, in milliseconds. */
const RETRY_MS = 1_000;
/** How long a request waits for the books: a database may hang. */
const PATIENCE_MS = 5_000;
/** Digits of a spend id before its token: `sp_` and 8 of the gateway's. */
const TOKEN_AT = "sp_".length + 8;

/** What a request took. */
export interface Outcome extends Spent {
  /** Those of the prompt and of the reply. */
  readonly tokens: number;
}

/** What openBooks() needs. */
export type ReadingContext = Pick<GatewayContext, "config" | "installed" | "clock" | "diagnose">;

/** Runs a pass that copies what is settled, then does `work` on the books, and closes them. */
export async function readBooks<T>(
  context: ReadingContext,
  work: (books: BooksFiles) => Promise<T>,
): Promise<T> {
  const books = openBooks(context.config, context);
  try {
    await copySettled(books);
    return await work(books);
  } finally {
    await books.store.close();
  }
}

/**
 * What was spent, by day, account and key. `ownOnly`: without what the gateways of other data_dirs
 * have spent. `before`: without what ended at this moment or later, in ISO 8601; undefined: all.
 */
export async function readSpent(
  { store, currency }: BooksFiles,
  ownOnly: boolean,
  before?: string,
): Promise<readonly Spent[]> {
  const lastDay = before?.slice(0, 10) ?? "9999";
  const sums = await store.sums({ ownOnly }, ["day", "account", "key_id", "currency"]);
  const spent: Spent[] = sums.filter((sum) => sum.currency === currency && sum.day < lastDay);
  if (before === undefined) return spent;
  // The stored sum of that day would include requests that ended later.
  for await (const records of store.records({ day: lastDay, ownOnly }))
    for (const { account, key_id, cost, ...record } of records)
      if (record.ended_at < before && record.currency === currency)
        spent.push({ account, key_id, day: lastDay, cost: parseMoney(cost) });
  return spent;
}

/** What these requests came to that ended a moment ago, by Opening.token. Others are not there. */
export async function readOutcomes(
  { store, clock }: BooksFiles,
  tokens: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>();
  const from = dayOf(clock.now() - DAY_MS);
  for await (const records of store.records({ from, ownOnly: true }))
    for (const { usage_id, account, key_id, cost, total_tokens } of records) {
      const token = usage_id.slice(TOKEN_AT);
      const outcome = { account, key_id, cost: parseMoney(cost), tokens: total_tokens };
      if (tokens.has(token)) outcomes.set(token, outcome);
    }
  return outcomes;
}

/** What was spent before this process began to count. */
export interface OpeningSpend {
  /** Whether it is known. */
  isKnown(): boolean;
  /**
   * Reads the books if that is needed, and again some time after a failure. Resolves with whether
   * it is known then. `isFirst`: nothing has been counted yet, so they are read whole.
   */
  know(isFirst?: boolean): Promise<boolean>;
}

/** `learn` is given what was spent. `diagnose` is told of a failure, and of its end. */
export function createOpeningSpend(
  context: ReadingContext,
  learn: (spent: readonly Spent[]) => Promise<void>,
): OpeningSpend {
  const { clock, diagnose } = context;
  const startedAt = new Date(clock.now()).toISOString();
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
      // Requests were served meanwhile: they count already.
      if (isFailing && before === undefined)
        spent = await readBooks(context, (books) => readSpent(books, true, startedAt));
      isKnown = true;
      await learn(spent);
      if (isFailing) diagnose({ event: "budgets_known", level: "info" });
    } catch (error) {
      fail((error as Error).message);
      retryAt = clock.monotonic() + RETRY_MS;
    }
    reading = undefined;
  }

  return {
    isKnown: () => isKnown,
    async know(isFirst = false) {
      if (!isKnown && clock.monotonic() >= retryAt)
        reading ??= read(isFirst ? undefined : startedAt);
      const isRead = !reading || (await waitAtMost(clock, PATIENCE_MS, reading));
      if (!isRead) fail(`the books were not read within ${PATIENCE_MS / 1_000} seconds`);
      return isKnown;
    },
  };
}
