// The lines of the spend log as text, the same as JSON.stringify() makes of the records. Two of
// them are written for each request, and JSON.stringify() would take three times as long.
import type { AttemptRecord } from "../../../core/ledger/ledger.ts";
import type { Price } from "../../../core/ledger/price.ts";
import type { OpenRecord, SettleRecord } from "./spend-lines.ts";

/** What stands in JSON as it is: printable ASCII, but no quotation mark and no backslash. */
const NOT_PLAIN = /[^ !#-[\]-~]/;

const quote = (text: string): string => (NOT_PLAIN.test(text) ? JSON.stringify(text) : `"${text}"`);

const quoteOrNull = (text: string | null): string => (text === null ? "null" : quote(text));

/** Prices belong to the configuration: the same objects come with each request. */
const priceTexts = new WeakMap<Price, string>();

function priceText(price: Price | null | undefined): string {
  if (!price) return "null";
  let text = priceTexts.get(price);
  if (text === undefined) {
    text = JSON.stringify(price);
    priceTexts.set(price, text);
  }
  return text;
}

/** The fields that both lines of a request have after its time. */
const about = (record: OpenRecord | SettleRecord): string =>
  `"gateway_request_id":${quote(record.gateway_request_id)},"account":${quote(record.account)},` +
  `"key_id":${quote(record.key_id)},"model_requested":${quote(record.model_requested)}`;

/** The open line of a request, without its line end. */
export const openText = (record: OpenRecord): string =>
  `{"type":"open","spend_id":"${record.spend_id}","time":"${record.time}",${about(record)},` +
  `"stream":${record.stream}${record.hold === undefined ? "" : `,"hold":"${record.hold}"`}}`;

/** The settle line of a request, without its line end. */
export const settleText = (record: SettleRecord): string =>
  `{"type":"settle","spend_id":"${record.spend_id}","time":"${record.time}",${about(record)},` +
  `"model_served":${quoteOrNull(record.model_served)},"provider":${quoteOrNull(record.provider)},` +
  `"status":"${record.status}","http_status":${record.http_status},` +
  `"error_code":${quoteOrNull(record.error_code)},` +
  `"finish_reason":${quoteOrNull(record.finish_reason)},` +
  `"attempts":[${record.attempts.map(attemptText).join()}],"usage":${usageText(record.usage)},` +
  `"usage_source":"${record.usage_source}","cost":"${record.cost}",` +
  `"currency":"${record.currency}","first_token_ms":${record.first_token_ms},` +
  `"duration_ms":${record.duration_ms}` +
  `${record.notes ? `,"notes":${JSON.stringify(record.notes)}` : ""}` +
  `,"prices":${priceText(record.prices)}}`;

function attemptText(attempt: AttemptRecord): string {
  const { status, path, detail, share } = attempt;
  const isPlain = (status ?? path ?? detail ?? share) === undefined;
  if (!isPlain) return JSON.stringify(attempt);
  return (
    `{"model":${quote(attempt.model)},"provider":${quote(attempt.provider)},` +
    `"outcome":${quote(attempt.outcome)},"duration_ms":${attempt.duration_ms}}`
  );
}

function usageText(usage: SettleRecord["usage"]): string {
  const { cache_write_tokens: written, cache_write_1h_tokens: written1h } = usage;
  return (
    `{"prompt_tokens":${usage.prompt_tokens},"completion_tokens":${usage.completion_tokens},` +
    `"total_tokens":${usage.total_tokens},` +
    `"prompt_cache_hit_tokens":${usage.prompt_cache_hit_tokens},` +
    `"prompt_cache_miss_tokens":${usage.prompt_cache_miss_tokens},` +
    `"reasoning_tokens":${usage.reasoning_tokens}` +
    `${written === undefined ? "" : `,"cache_write_tokens":${written}`}` +
    `${written1h === undefined ? "" : `,"cache_write_1h_tokens":${written1h}`}}`
  );
}
