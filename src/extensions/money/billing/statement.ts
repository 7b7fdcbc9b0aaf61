// What an account owes for a month, from the usage records: added up by model, or record by record.
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

/** A month of a bill, in UTC. */
export const MONTH = /^[1-9]\d{3}-(0[1-9]|1[0-2])$/;

/**
 * A bill, as `billing statement --json` prints it: the records that an account has in a month, by
 * the days on which they are booked, one line a model in the order of their names. Nothing of
 * other currencies is in the sums; `other_currencies` has how many requests were billed in each.
 * `ownOnly`: leave out the records of other data_dirs whose gateways write into the same database.
 */
export async function statement(
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
 * Prints records one by one as CSV (RFC 4180), with the columns' names in the first line. `print`
 * takes some lines, and resolves when it takes more. `currency`: only records in this one.
 */
export async function statementCsv(
  store: UsageStore,
  filter: UsageFilter,
  print: (lines: string) => Promise<void>,
  currency?: string,
): Promise<void> {
  // Nothing is printed before it is known that the records can be read.
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
