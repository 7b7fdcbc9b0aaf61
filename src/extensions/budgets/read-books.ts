// Reads from the books what was spent: sums of the usage records, after everything settled has been
// copied into them.
import { accountLimitName, keyLimitName } from "../../core/accounts/limiter.ts";
import type { Clock } from "../../core/clock.ts";
import type { Config } from "../../core/config.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type { Extension } from "../../core/extension/extension.ts";
import { copySettled, openBooks, type BooksFiles } from "../books/index.ts";
import {
  parseMoney,
  type Dimension,
  type UsageFilter,
  type UsageStore,
} from "../usage-records/index.ts";
import type { BooksBalance, BooksQuery, ReadBooks } from "./opening-balance.ts";
import { periodName } from "./periods.ts";

const BY = ["day", "account", "key_id", "currency"] as const satisfies readonly Dimension[];

export interface ReadOptions {
  /** Tells which day it is. */
  readonly clock: Clock;
  /** Gets what is wrong with the books while settled requests are copied. */
  readonly diagnose: Diagnose;
  /** One of these may bring the usage store. */
  readonly extensions: readonly Extension[];
  /**
   * Whether only what the gateways of this data_dir have spent counts, where others write into the
   * same store.
   */
  readonly ownOnly: boolean;
}

/** What one account or key has spent. */
interface Sums {
  day: bigint;
  month: bigint;
  total: bigint;
}

/** A part of what was spent. */
interface Part {
  readonly account: string;
  readonly key_id: string;
  readonly currency: string;
  readonly cost: bigint;
}

/** Opens the books for each reading, and closes them after it. */
export const booksReader =
  (config: Config, options: ReadOptions): ReadBooks =>
  async (query) => {
    const books = openBooks(config, options);
    try {
      return await readBalance(books, query, options);
    } finally {
      await books.store.close();
    }
  };

async function readBalance(
  books: BooksFiles,
  query: BooksQuery,
  { clock, ownOnly }: ReadOptions,
): Promise<BooksBalance> {
  await copySettled(books);
  return readSpent(books, query, { now: clock.now(), ownOnly });
}

/**
 * Adds up what was spent, by the names of accounts and keys, from what has been copied into the
 * usage records.
 */
export async function readSpent(
  books: BooksFiles,
  query: BooksQuery,
  { now, ownOnly }: { readonly now: number; readonly ownOnly: boolean },
): Promise<BooksBalance> {
  const spent = new Map<string, Sums>();
  const today = periodName("day", now);
  const add = (part: Part, day: string): void => {
    if (part.currency !== books.currency) return;
    for (const name of [accountLimitName(part.account), keyLimitName(part.key_id)]) {
      const sums = spent.get(name) ?? { day: 0n, month: 0n, total: 0n };
      spent.set(name, sums);
      sums.total += part.cost;
      if (day.startsWith(query.month)) sums.month += part.cost;
      if (day === today) sums.day += part.cost;
    }
  };
  await readMonth(books, query, ownOnly, add);
  if (query.withEarlier) await readEarlier(books, query.month, ownOnly, add);
  return spent;
}

type Add = (part: Part, day: string) => void;

/** Adds what ended in the month of a query before its moment. */
async function readMonth(
  { store }: BooksFiles,
  { month, before }: Pick<BooksQuery, "month" | "before">,
  ownOnly: boolean,
  add: Add,
): Promise<void> {
  if (before === -Infinity) return;
  const cut = before === Infinity ? "9999" : new Date(before).toISOString();
  const lastDay = cut.slice(0, 10);
  // Of the day of the moment single records are read: sums would have what ended after it.
  for (const sum of await store.sums({ month, ownOnly }, BY))
    if (sum.day < lastDay) add(sum, sum.day);
  if (before === Infinity) return;
  for await (const records of store.records({ day: lastDay, ownOnly })) {
    for (const record of records)
      if (record.ended_at < cut) add({ ...record, cost: parseMoney(record.cost) }, lastDay);
  }
}

/** Adds what ended before a month. */
async function readEarlier(
  { store }: BooksFiles,
  month: string,
  ownOnly: boolean,
  add: Add,
): Promise<void> {
  const first = await firstMonth(store, { ownOnly });
  if (first === undefined) return;
  for (let name = first; name < month; name = monthAfter(name)) {
    for (const sum of await store.sums({ month: name, ownOnly }, BY)) add(sum, sum.day);
  }
}

/** The month of the first record. Undefined: there is none. */
async function firstMonth(store: UsageStore, filter: UsageFilter): Promise<string | undefined> {
  // Leaving the loop ends the reading. A reading that is only left alone keeps its connection to
  // the database, and the store waits for that when it is closed.
  for await (const [record] of store.records(filter)) return record?.ended_at.slice(0, 7);
  return undefined;
}

const monthAfter = (month: string): string => {
  const [year = 0, number = 0] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7);
};
