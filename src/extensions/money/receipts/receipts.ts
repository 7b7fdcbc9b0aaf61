// Finds receipts: copies what was settled just now, then searches the usage records. A receipt is
// what a client is told of a request: no provider, and no host. src/manual/receipts.md has the
// meaning of its fields.
import { formatMoney, picoOf, type Price } from "../../../core/ledger/price.ts";
import { ownTurn } from "../../../core/turns.ts";
import { waitAtMost } from "../ledger/index.ts";
import type { AttemptDetails, RequestQuery, UsageRecord } from "../records/index.ts";
import type { BooksFiles, SharedBooks } from "../usage/index.ts";

/**
 * How long a search waits for the copying, in milliseconds. When a day closes it may take longer.
 */
const MOST_COPY_MS = 5_000;

/**
 * The latest receipts of a request id, in the order in which the requests ended. Rejects if the
 * books cannot be read, or are not copied in time.
 */
export async function findReceipts({ files, copyNow }: SharedBooks, query: RequestQuery) {
  const isCopied = await waitAtMost(files.clock, MOST_COPY_MS, copyNow());
  if (!isCopied) throw new Error("copying what was settled takes too long");
  // Many searches wait for one copy. All of them in one turn would keep other requests waiting.
  await ownTurn();
  return receiptsOf(files, await files.store.find(query));
}

/** The receipts of records that UsageStore.find() has found. */
export const receiptsOf = ({ days, store }: BooksFiles, records: readonly UsageRecord[]) =>
  records.map((record) => {
    const day = store.isOwn(record) ? days.of(record.day) : undefined;
    return receiptOf(record, day?.closed.number);
  });

/**
 * What is null does not exist, or was not recorded. What is undefined is not in the JSON.
 * `dayNumber`: of the line of days.jsonl that proves the record. Undefined: its day is open,
 * or another gateway's line proves it.
 */
function receiptOf(record: UsageRecord, dayNumber: number | undefined) {
  const { details } = record;
  return {
    request_id: record.gateway_request_id,
    spend_id: record.usage_id,
    model_requested: details?.model_requested ?? null,
    // A record that nobody served has the name that the client asked for.
    model: record.provider === null ? null : record.model,
    status: record.status,
    error_code: details?.error_code ?? null,
    finish_reason: details?.finish_reason ?? null,
    started_at: record.started_at,
    first_token_ms: details?.first_token_ms ?? null,
    ended_at: record.ended_at,
    attempts: details?.attempts.map(attemptOf) ?? [],
    usage: {
      prompt_tokens: record.prompt_tokens,
      completion_tokens: record.completion_tokens,
      total_tokens: record.total_tokens,
      prompt_cache_hit_tokens: record.prompt_cache_hit_tokens,
      prompt_cache_miss_tokens: record.prompt_cache_miss_tokens,
      cache_write_tokens: record.cache_write_tokens,
      cache_write_1h_tokens: details?.cache_write_1h_tokens,
      reasoning_tokens: record.reasoning_tokens,
    },
    usage_source: details?.usage_source ?? null,
    prices: pricesOf(details?.prices) ?? null,
    cost: record.cost,
    currency: record.currency,
    notes: details?.notes,
    seal: dayNumber === undefined ? null : { day: record.day, number: dayNumber },
  };
}

const attemptOf = ([model, outcome, duration_ms, charge]: AttemptDetails) => ({
  model,
  outcome: outcome === "completed" ? "ok" : outcome,
  duration_ms,
  usage: charge?.usage,
  prices: pricesOf(charge?.prices),
  cost: charge?.cost,
});

/** Exact decimal numbers. */
const pricesOf = (prices: Price | undefined) =>
  prices && {
    input_cache_hit: perMillion(prices.input_cache_hit) ?? null,
    input_cache_miss: perMillion(prices.input_cache_miss),
    input_cache_write: perMillion(prices.input_cache_write) ?? null,
    input_cache_write_1h: perMillion(prices.input_cache_write_1h),
    output: perMillion(prices.output),
  };

const perMillion = (price: number | undefined): string | undefined =>
  price === undefined ? undefined : formatMoney(picoOf(1_000_000, price));
