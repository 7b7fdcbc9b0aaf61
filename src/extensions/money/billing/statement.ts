// Makes statements from usage records: a month's bill by model, or every record as CSV.
import {
  addToSum,
  emptySum,
  printedSum,
  USAGE_COLUMNS,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import type { StatementToSeal } from "../usage/index.ts";

/** Matches a month, such as 2026-11. */
export const MONTH = /^[1-9]\d{3}-(0[1-9]|1[0-2])$/;

/**
 * Makes the bill of an account, as `billing statement --json` prints it. It adds up the records
 * that are booked on days of the month, one line for each model, in the order of their names. It
 * leaves out records in other currencies; `other_currencies` has the number of requests in each.
 * `ownOnly`: leave out the records of other data_dirs whose gateways write into the same database.
 */
export async function makeStatement(
  store: UsageStore,
  { account, month, currency }: Omit<StatementToSeal, "total">,
  ownOnly = false,
) {
  const lines: SumBy<"model" | "currency">[] = [];
  const total = { ...emptySum(), currency };
  const others: Record<string, number> = {};
  for (const sum of await store.sums({ account, month, ownOnly }, ["model", "currency"])) {
    if (sum.currency === currency) {
      lines.push(sum);
      addToSum(total, sum);
      continue;
    }
    others[sum.currency] = (others[sum.currency] ?? 0) + sum.requests;
  }
  lines.sort((one, other) => (one.model < other.model ? -1 : 1));
  const sums = { lines: lines.map(printedSum), total: printedSum(total) };
  return { account, month, currency, ...sums, other_currencies: others };
}

/**
 * Prints each record as a line of CSV (RFC 4180), after a line with the names of the columns.
 * `print` resolves when it can take more. `currency`: print only records in it; absent: all.
 */
export async function statementCsv(
  store: UsageStore,
  filter: UsageFilter,
  print: (lines: string) => Promise<void>,
  currency?: string,
): Promise<void> {
  // The head waits for the first records: if these cannot be read, nothing is printed.
  let head = `${USAGE_COLUMNS.join(",")}\r\n`;
  for await (const records of store.records(filter)) {
    const billed = records.filter((record) => record.currency === (currency ?? record.currency));
    await print(head + billed.map(csvLine).join(""));
    head = "";
  }
  if (head !== "") await print(head);
}

const csvLine = (record: UsageRecord): string =>
  `${USAGE_COLUMNS.map((column) => csvField(String(record[column] ?? ""))).join(",")}\r\n`;

const csvField = (text: string): string =>
  /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
