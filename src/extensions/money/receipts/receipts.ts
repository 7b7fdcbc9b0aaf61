// Finds receipts: copies requests that have just settled, then searches the usage records. A
// receipt is the part of a record that its client may see, without the names of providers and
// hosts. src/manual/receipts.md explains its fields.
import { formatMoney, picoOf, type Price } from "../../../core/ledger/price.ts";
import { waitForTurn } from "../../../core/turns.ts";
import { waitAtMost } from "../ledger/index.ts";
import type { AttemptDetails, RequestQuery, UsageRecord } from "../records/index.ts";
import type { BooksFiles, SharedBooks } from "../usage/index.ts";

/** How long a search waits for the pass, in milliseconds. One that closes a day may need more. */
const MAX_PASS_MS = 5_000;

/**
 * Finds the latest receipts of a request id, in the order in which the requests ended. Rejects if
 * the books cannot be read, or if the pass is not over in time.
 */
export async function findReceipts({ files, copyNow }: SharedBooks, query: RequestQuery) {
  const isCopied = await waitAtMost(files.clock, MAX_PASS_MS, copyNow());
  if (!isCopied) throw new Error("copying what was settled takes too long");
  // Many searches may wait for the same pass. A turn for each lets other requests run in between.
  await waitForTurn();
  return receiptsOf(files, await files.store.find(query));
}

/** Makes receipts of records that UsageStore.find() has returned. */
export const receiptsOf = ({ days, store }: BooksFiles, records: readonly UsageRecord[]) =>
  records.map((record) => {
    const day = store.isOwn(record) ? days.of(record.day) : undefined;
    return receiptOf(record, day?.closed.number);
  });

/**
 * Null members have no value, or it was not recorded. Undefined members are not in the JSON.
 * `dayNumber`: the number of the line of days.jsonl that proves the record. Undefined: the day is
 * open, or the record is of another gateway.
 */
function receiptOf(record: UsageRecord, dayNumber: number | undefined) {
  const { details } = record;
  return {
    request_id: record.gateway_request_id,
    spend_id: record.usage_id,
    model_requested: details?.model_requested ?? null,
    // Without a provider, `record.model` is the name that the client asked for.
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

/** Prices per million tokens, as exact decimals. */
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
