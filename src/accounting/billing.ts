// What an account owes for a month, from the usage records: summed up, or record by record. Both stream.
import { formatMoney, parseMoney } from "./price.ts";
import { USAGE_COLUMNS, type UsageFilter, type UsageRecord, type UsageStore } from "./records.ts";

/** Requests, tokens in each price class and cost; reasoning tokens are a part of completion_tokens. */
const CLASSES = ["prompt_cache_hit_tokens", "prompt_cache_miss_tokens", "completion_tokens", "reasoning_tokens"] as const;
const nothing = () => ({ requests: 0, prompt_cache_hit_tokens: 0, prompt_cache_miss_tokens: 0, completion_tokens: 0, reasoning_tokens: 0, cost: 0n });

/** Sums up the month, exactly; the models stand in the order of their names. Records in another than this `currency` are counted apart. */
export async function statement(store: UsageStore, { account, month, currency }: { readonly [option in "account" | "month" | "currency"]: string }) {
  const total = nothing();
  const models = new Map<string, typeof total>();
  /** Requests in other currencies: nothing of them is in the sums. */
  const other_currencies: Record<string, number> = {};
  for await (const records of store.records({ account, month })) {
    for (const { currency: other } of records) if (other !== currency) other_currencies[other] = (other_currencies[other] ?? 0) + 1;
    for (const record of records.filter((record) => record.currency === currency)) {
      const line = models.get(record.model) ?? nothing();
      models.set(record.model, line);
      for (const sum of [line, total]) {
        sum.requests += 1;
        for (const name of CLASSES) sum[name] += record[name];
        sum.cost += parseMoney(record.cost);
      }
    }
  }
  const shown = (sum: typeof total) => ({ ...sum, cost: formatMoney(sum.cost), currency });
  const lines = [...models].sort(([a], [b]) => (a < b ? -1 : 1)).map(([model, sum]) => ({ model, ...shown(sum) }));
  return { account, month, currency, lines, total: shown(total), other_currencies };
}

/** The month's records one by one, for a spreadsheet: every line has its gateway_request_id. RFC 4180. */
export async function statementCsv(store: UsageStore, filter: UsageFilter, print: (lines: string) => Promise<void>): Promise<void> {
  const line = (record: UsageRecord) => `${USAGE_COLUMNS.map((column) => csvField(record[column])).join(",")}\r\n`;
  await print(`${USAGE_COLUMNS.join(",")}\r\n`);
  for await (const records of store.records(filter)) await print(records.map(line).join(""));
}

const csvField = (value: string | number | null): string =>
  /[",\r\n]|^\s|\s$/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
