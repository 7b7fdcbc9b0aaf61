// Reads the books: what was spent before this process began to count, and what requests came to
// that a dead worker had in flight.
import { DAY_MS } from "../../../config/fields.ts";
import type { GatewayContext } from "../../../core/extension/extension.ts";
import { copySettled, openBooks, type BooksFiles } from "../usage/index.ts";
import { dayOf, parseMoney, type Dimension } from "../records/index.ts";
import type { Outcome } from "./contracts.ts";
import type { Spent } from "./purses.ts";

const BY = ["day", "account", "key_id", "currency"] as const satisfies readonly Dimension[];
/** Digits of a spend id before its token: `sp_` and 8 of the gateway's. */
const TOKEN_AT = "sp_".length + 8;

/** What the books are opened with. */
export type BooksContext = Pick<GatewayContext, "config" | "extensions" | "clock" | "diagnose">;

/** Opens the books for one piece of work, after everything that was settled has been copied. */
export async function withBooks<T>(
  context: BooksContext,
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

export interface SpentQuery {
  /** Leave out what the gateways of other data_dirs have spent. */
  readonly ownOnly: boolean;
  /** Leave out what ended at this moment or later, in ISO 8601. Undefined: nothing has. */
  readonly before?: string | undefined;
}

/** What was spent, by day, account and key. */
export async function readSpent(
  { store, currency }: BooksFiles,
  { ownOnly, before }: SpentQuery,
): Promise<readonly Spent[]> {
  const lastDay = before?.slice(0, 10) ?? "9999";
  const sums = await store.sums({ ownOnly }, BY);
  const spent: Spent[] = sums.filter((sum) => sum.currency === currency && sum.day < lastDay);
  if (before === undefined) return spent;
  // A sum of that day would have what ended later.
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
    for (const { usage_id, cost, total_tokens } of records) {
      const token = usage_id.slice(TOKEN_AT);
      if (tokens.has(token)) outcomes.set(token, { cost: parseMoney(cost), tokens: total_tokens });
    }
  return outcomes;
}
