// The lines of the spend log as text, the same as JSON.stringify() makes of the records. Two of
// them are written for each request, and JSON.stringify() would take three times as long.
import type { AttemptRecord, Settlement } from "../../../core/ledger/ledger.ts";
import type { Price } from "../../../core/ledger/price.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import { isoTime } from "./iso-time.ts";
import type { OpenRecord } from "./spend-lines.ts";

/** What stands in JSON as it is: printable ASCII, but no quotation mark and no backslash. */
const NOT_PLAIN = /[^ !#-[\]-~]/;

const quote = (text: string): string => (NOT_PLAIN.test(text) ? JSON.stringify(text) : `"${text}"`);

const quoteOrNull = (text: string | null): string => (text === null ? "null" : quote(text));

/** Prices belong to the configuration: the same objects come with each request. */
const priceTexts = new WeakMap<Price, string>();

function priceText(price: Price | undefined): string {
  if (!price) return "null";
  const text = priceTexts.get(price) ?? JSON.stringify(price);
  priceTexts.set(price, text);
  return text;
}

/** What both lines of a request say, with the time of one of them. */
const textOf = (record: OpenRecord, time: string): string =>
  `"spend_id":"${record.spend_id}","time":"${time}",` +
  `"gateway_request_id":${quote(record.gateway_request_id)},"account":${quote(record.account)},` +
  `"key_id":${quote(record.key_id)},"model_requested":${quote(record.model_requested)}`;

/** The open line of a request, without its line end. */
export const openText = (record: OpenRecord): string =>
  `{"type":"open",${textOf(record, record.time)},"stream":${record.stream}` +
  `${record.hold === undefined ? "" : `,"hold":"${record.hold}"`}}`;

/**
 * The settle line of a request that was opened by `open` and ended at `now`, in milliseconds of the
 * wall clock, without its line end.
 */
export function settleText(open: OpenRecord, now: number, settlement: Settlement): string {
  const startedAt = Date.parse(open.time);
  const endedAt = Math.max(now, startedAt);
  const { attempts, notes } = settlement;
  return (
    `{"type":"settle",${textOf(open, isoTime(endedAt))},` +
    `"model_served":${quoteOrNull(settlement.modelServed)},` +
    `"provider":${quoteOrNull(settlement.provider)},` +
    `"status":"${settlement.status}","http_status":${settlement.httpStatus},` +
    `"error_code":${quoteOrNull(settlement.errorCode)},` +
    `"finish_reason":${quoteOrNull(settlement.finishReason)},` +
    `"attempts":[${attempts.map(attemptText).join()}],"usage":${usageText(settlement.usage)},` +
    `"usage_source":"${settlement.usageSource}","cost":"${settlement.cost}",` +
    `"currency":"${settlement.currency}","first_token_ms":${settlement.firstTokenMs},` +
    `"duration_ms":${endedAt - startedAt}` +
    `${notes ? `,"notes":${JSON.stringify(notes)}` : ""},"prices":${priceText(settlement.price)}}`
  );
}

function attemptText(attempt: AttemptRecord): string {
  const { status, path, detail, share } = attempt;
  if ((status ?? path ?? detail ?? share) !== undefined) return JSON.stringify(attempt);
  return (
    `{"model":${quote(attempt.model)},"provider":${quote(attempt.provider)},` +
    `"outcome":${quote(attempt.outcome)},"duration_ms":${attempt.duration_ms}}`
  );
}

function usageText(usage: Usage): string {
  const { cache_write_tokens: written, cache_write_1h_tokens: written1h } =
    usage.prompt_tokens_details;
  return (
    `{"prompt_tokens":${usage.prompt_tokens},"completion_tokens":${usage.completion_tokens},` +
    `"total_tokens":${usage.total_tokens},` +
    `"prompt_cache_hit_tokens":${usage.prompt_cache_hit_tokens},` +
    `"prompt_cache_miss_tokens":${usage.prompt_cache_miss_tokens},` +
    `"reasoning_tokens":${usage.completion_tokens_details.reasoning_tokens}` +
    `${written === undefined ? "" : `,"cache_write_tokens":${written}`}` +
    `${written1h === undefined ? "" : `,"cache_write_1h_tokens":${written1h}`}}`
  );
}
