// What an account owes for a month, from the usage records: added up by model, or record by record.
import { formatMoney } from "../../../core/ledger/price.ts";
import {
  addToSum,
  emptySum,
  USAGE_COLUMNS,
  type Sum,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import type { StatementToSeal } from "../usage/index.ts";

/** A sum as it is printed. */
export interface PrintedSum extends Omit<Sum, "cost"> {
  /** A decimal number, exact. */
  readonly cost: string;
}

/** A bill. `billing statement --json` prints it. */
export interface Statement extends StatementToSeal {
  /** One line a model, in the order of their names. */
  readonly lines: readonly (PrintedSum & { readonly model: string })[];
  /** All lines together. */
  readonly total: PrintedSum & { readonly currency: string };
  /**
   * The number of requests by currency that were billed in another one. Nothing of them is in the
   * sums.
   */
  readonly other_currencies: Readonly<Record<string, number>>;
}

/** Replaces a sum's cost by an exact decimal. Other members stay. */
export const printed = <S extends Sum>({ cost, ...sum }: S): Omit<S, "cost"> & PrintedSum => ({
  ...(sum as Omit<S, "cost"> & Omit<Sum, "cost">),
  cost: formatMoney(cost),
});

/**
 * Adds up the records that an account has in a month, by the days on which they are booked.
 * `ownOnly`: leave out those of other data_dirs whose gateways write into the same database.
 */
export async function statement(
  store: UsageStore,
  { account, month, currency }: StatementToSeal,
  ownOnly = false,
): Promise<Statement> {
  const total = { ...emptySum(), currency };
  const otherCurrencies: Record<string, number> = {};
  const sums = await store.sums({ account, month, ownOnly }, ["model", "currency"]);
  for (const { currency: other, requests } of sums) {
    if (other === currency) continue;
    otherCurrencies[other] = (otherCurrencies[other] ?? 0) + requests;
  }
  const lines = sums
    .filter((sum) => sum.currency === currency)
    .sort((a, b) => (a.model < b.model ? -1 : 1));
  for (const line of lines) addToSum(total, line);
  return {
    account,
    month,
    currency,
    lines: lines.map(printed),
    total: printed(total),
    other_currencies: otherCurrencies,
  };
}

/** Which records to print, and where to. */
export interface CsvOptions {
  /** Which records of the store. */
  readonly filter: UsageFilter;
  /** Only records in this currency. Absent: all. */
  readonly currency?: string | undefined;
  /** Takes some lines. The next ones come when it resolves. */
  readonly print: (lines: string) => Promise<void>;
}

/** Prints records one by one as CSV (RFC 4180), with the columns' names in the first line. */
export async function statementCsv(
  store: UsageStore,
  { filter, currency, print }: CsvOptions,
): Promise<void> {
  await print(`${USAGE_COLUMNS.join(",")}\r\n`);
  for await (const records of store.records(filter)) {
    const billed = records.filter((record) => record.currency === (currency ?? record.currency));
    await print(billed.map(csvLine).join(""));
  }
}

const csvLine = (record: UsageRecord): string =>
  `${USAGE_COLUMNS.map((column) => csvField(record[column])).join(",")}\r\n`;

const csvField = (value: string | number | null): string =>
  /[",\r\n]|^\s|\s$/.test(String(value))
    ? `"${String(value).replaceAll('"', '""')}"`
    : String(value ?? "");
