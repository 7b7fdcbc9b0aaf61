// Sums of usage records, grouped by whatever a bill, a budget or the console asks for.
import { formatMoney } from "../../../core/ledger/price.ts";
import { parseMoney } from "./amounts.ts";
import type { UsageRecord } from "./usage-record.ts";

/** What sums are grouped by. `provider` is empty where no provider began to answer. */
export type Dimension = "day" | "account" | "key_id" | "model" | "provider" | "currency";

/** All dimensions. The sums that are kept of a closed day are grouped by them. */
export const DIMENSIONS: readonly Dimension[] = [
  "day",
  "account",
  "key_id",
  "model",
  "provider",
  "currency",
];

/** What some records add up to. */
export interface Sum {
  /** How many records. */
  requests: number;
  /** Prompt tokens from the providers' caches. */
  prompt_cache_hit_tokens: number;
  /** All other prompt tokens. */
  prompt_cache_miss_tokens: number;
  /** Part of prompt_cache_miss_tokens. */
  cache_write_tokens: number;
  /** Reasoning tokens included. */
  completion_tokens: number;
  /** Part of completion_tokens. */
  reasoning_tokens: number;
  /** Exact, in pico-units of the currency. */
  cost: bigint;
}

/** A sum of the records that agree in the dimensions `D`. */
export type SumBy<D extends Dimension> = Sum & { readonly [dimension in D]: string };

/** The sum of no records. */
export const emptySum = (): Sum => ({
  requests: 0,
  prompt_cache_hit_tokens: 0,
  prompt_cache_miss_tokens: 0,
  cache_write_tokens: 0,
  completion_tokens: 0,
  reasoning_tokens: 0,
  cost: 0n,
});

/** Adds `part` to `sum`. */
export function addToSum(sum: Sum, part: Sum): void {
  sum.requests += part.requests;
  sum.prompt_cache_hit_tokens += part.prompt_cache_hit_tokens;
  sum.prompt_cache_miss_tokens += part.prompt_cache_miss_tokens;
  sum.cache_write_tokens += part.cache_write_tokens;
  sum.completion_tokens += part.completion_tokens;
  sum.reasoning_tokens += part.reasoning_tokens;
  sum.cost += part.cost;
}

/** Adds sums up by some dimensions. */
export interface Summer<D extends Dimension> {
  /** Adds a sum that has all of the dimensions. */
  add(part: SumBy<D>): void;
  /** What was added so far. */
  sums(): readonly SumBy<D>[];
}

export function createSummer<D extends Dimension>(by: readonly D[]): Summer<D> {
  const groups = new Map<string, SumBy<D>>();
  return {
    add(part) {
      const key = by.map((name) => part[name]).join("\0");
      let group = groups.get(key);
      if (!group) {
        const names = Object.fromEntries(by.map((name) => [name, part[name]]));
        group = { ...names, ...emptySum() } as SumBy<D>;
        groups.set(key, group);
      }
      addToSum(group, part);
    },
    sums: () => [...groups.values()],
  };
}

/**
 * A record as a sum. Each member is named: of millions of records, copies would take longer than
 * everything else.
 */
export const sumOfRecord = (record: UsageRecord): SumBy<Dimension> => ({
  day: record.day,
  account: record.account,
  key_id: record.key_id,
  model: record.model,
  provider: record.provider ?? "",
  currency: record.currency,
  requests: 1,
  prompt_cache_hit_tokens: record.prompt_cache_hit_tokens,
  prompt_cache_miss_tokens: record.prompt_cache_miss_tokens,
  cache_write_tokens: record.cache_write_tokens,
  completion_tokens: record.completion_tokens,
  reasoning_tokens: record.reasoning_tokens,
  cost: parseMoney(record.cost),
});

/** The costs of sums, exact decimals by currency. */
export function costsByCurrency(
  sums: readonly SumBy<"currency">[],
): Readonly<Record<string, string>> {
  const summer = createSummer(["currency"]);
  for (const sum of sums) summer.add(sum);
  const costs = summer.sums().map(({ currency, cost }) => [currency, formatMoney(cost)] as const);
  return Object.fromEntries([...costs].sort());
}

/** Sums as JSON. parseSums() reads them back. */
export const sumsText = (sums: readonly SumBy<Dimension>[]): string =>
  `${JSON.stringify(sums.map((sum) => ({ ...sum, cost: formatMoney(sum.cost) })))}\n`;

/** Reads sumsText(). Throws a SyntaxError if a text is not from there. */
export const parseSums = (text: string): readonly SumBy<Dimension>[] =>
  (JSON.parse(text) as readonly (Omit<SumBy<Dimension>, "cost"> & { cost: string })[]).map(
    (sum) => ({ ...sum, cost: parseMoney(sum.cost) }) as SumBy<Dimension>,
  );
