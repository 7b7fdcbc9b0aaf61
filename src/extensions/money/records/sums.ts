// Sums of usage records, grouped by whatever a bill, a budget or the console asks for.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney } from "./amounts.ts";
import type { UsageRecord } from "./usage-record.ts";

/** All dimensions. The stored sums of a closed day are grouped by them. */
export const DIMENSIONS = ["day", "account", "key_id", "model", "provider", "currency"] as const;

/** What sums are grouped by. `provider` is empty where no provider began to answer. */
export type Dimension = (typeof DIMENSIONS)[number];

/** The columns of records that sums add up. */
export const SUMMED_COUNTS = [
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "cache_write_tokens",
  "completion_tokens",
  "reasoning_tokens",
] as const satisfies readonly (keyof UsageRecord)[];

/** The sum of some records. The counts have the names of the record's columns. */
export interface Sum extends Record<(typeof SUMMED_COUNTS)[number], number> {
  /** How many records it adds up. */
  requests: number;
  /** Exact, in pico-units of the currency. */
  cost: bigint;
}

/** The sum of the records that have the same values in the dimensions `D`. */
export type SumBy<D extends Dimension> = Sum & { readonly [dimension in D]: string };

/** The sum of no records. */
export const emptySum = (): Sum => {
  const counts = Object.fromEntries(SUMMED_COUNTS.map((name) => [name, 0]));
  return { requests: 0, ...counts, cost: 0n } as Sum;
};

/** Adds `part` to `sum`. */
export function addToSum(sum: Sum, part: Sum): void {
  sum.requests += part.requests;
  for (const name of SUMMED_COUNTS) sum[name] += part[name];
  sum.cost += part.cost;
}

/** Adds up sums and records, grouped by the dimensions `D`. */
export interface Summer<D extends Dimension> {
  /** Adds a sum that has all of the dimensions. */
  add(part: SumBy<D>): void;
  /** Adds a record. */
  addRecord(record: UsageRecord): void;
  /** The sums of everything added so far. */
  sums(): readonly SumBy<D>[];
}

export function createSummer<D extends Dimension>(by: readonly D[]): Summer<D> {
  const groups = new Map<string, SumBy<D>>();

  /** A record's provider may be null, which counts as "". */
  function groupOf(part: { readonly [dimension in D]: string | null }): Sum {
    const key = by.map((name) => part[name] ?? "").join("\0");
    let group = groups.get(key);
    if (!group) {
      const names = Object.fromEntries(by.map((name) => [name, part[name] ?? ""]));
      group = { ...names, ...emptySum() } as SumBy<D>;
      groups.set(key, group);
    }
    return group;
  }

  return {
    add: (part) => addToSum(groupOf(part), part),
    addRecord(record) {
      const group = groupOf(record);
      group.requests += 1;
      for (const name of SUMMED_COUNTS) group[name] += record[name];
      group.cost += parseMoney(record.cost);
    },
    sums: () => [...groups.values()],
  };
}

/** The total cost of sums by currency, as exact decimals. */
export function costsByCurrency(
  sums: readonly SumBy<"currency">[],
): Readonly<Record<string, string>> {
  const summer = createSummer(["currency"]);
  for (const sum of sums) summer.add(sum);
  const costs = summer.sums().map(({ currency, cost }) => [currency, formatMoney(cost)] as const);
  return Object.fromEntries([...costs].sort());
}

/** A sum to print: its cost is an exact decimal number. */
export const printedSum = <S extends Sum>({ cost, ...sum }: S) => ({
  ...sum,
  cost: formatMoney(cost),
});

/** Sums as JSON. parseSums() reads them back. */
export const sumsText = (sums: readonly SumBy<Dimension>[]): string =>
  `${JSON.stringify(sums.map(printedSum))}\n`;

/** Reads the text of sumsText(). Throws if it is malformed. */
export const parseSums = (text: string): readonly SumBy<Dimension>[] =>
  (JSON.parse(text) as readonly (Omit<SumBy<Dimension>, "cost"> & { cost: string })[]).map(
    (sum) => ({ ...sum, cost: parseMoney(sum.cost) }) as SumBy<Dimension>,
  );
