// What an account owes for a month, from the usage records: summed up, or record by record. Both stream.
import { formatMoney } from "../../core/ledger/price.ts";
import { addTo, nothing, USAGE_COLUMNS, type Sum, type UsageRecord } from "./records.ts";
import type { UsageFilter, UsageStore } from "./usage-store.ts";

export const MONTH = /^[1-9]\d{3}-(0[1-9]|1[0-2])$/; // of a bill, in UTC
export const isDay = (text: string): boolean =>
  MONTH.test(text.slice(0, 7)) && new Date(text).toJSON()?.slice(0, 10) === text; // V8 takes the 31st of any month
/** A sum as it is shown: its cost as an exact decimal. */
export const shown = <S extends Sum>({ cost, ...sum }: S) => ({ ...sum, cost: formatMoney(cost) });

/** Sums up the month, exactly; the models stand in the order of their names. Records in another than this `currency` are counted apart. */
export async function statement(
  store: UsageStore,
  { account, month, currency }: { readonly [option in "account" | "month" | "currency"]: string },
) {
  const total = { ...nothing(), currency };
  /** Requests in other currencies: nothing of them is in the sums. */
  const other_currencies: Record<string, number> = {};
  const sums = await store.sums({ account, month }, ["model", "currency"]);
  for (const { currency: other, requests } of sums)
    if (other !== currency) other_currencies[other] = (other_currencies[other] ?? 0) + requests;
  const lines = sums
    .filter((sum) => sum.currency === currency)
    .sort((a, b) => (a.model < b.model ? -1 : 1));
  for (const line of lines) addTo(total, line);
  return {
    account,
    month,
    currency,
    lines: lines.map(shown),
    total: shown(total),
    other_currencies,
  };
}

/** The month's records one by one, for a spreadsheet: every line has its gateway_request_id. RFC 4180. `currency`: only records in
 * this one; absent: all. */
export async function statementCsv(
  store: UsageStore,
  filter: UsageFilter,
  print: (lines: string) => Promise<void>,
  currency?: string,
): Promise<void> {
  const line = (record: UsageRecord) =>
    `${USAGE_COLUMNS.map((column) => csvField(record[column])).join(",")}\r\n`;
  await print(`${USAGE_COLUMNS.join(",")}\r\n`);
  for await (const records of store.records(filter)) {
    const billed = records.filter((record) => record.currency === (currency ?? record.currency));
    await print(billed.map(line).join(""));
  }
}

const csvField = (value: string | number | null): string =>
  /[",\r\n]|^\s|\s$/.test(String(value))
    ? `"${String(value).replaceAll('"', '""')}"`
    : String(value ?? "");
