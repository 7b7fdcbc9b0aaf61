// The record of one request: made from the events of the gateway when it is opened in the books,
// when it is settled, and when its response has left.
import type { AccessRecord } from "../../../core/http/exchange.ts";
import type { Opening, Settlement } from "../../../core/ledger/ledger.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Asked, RequestEntry } from "./contracts.ts";
import { outcomeOf, type Outcome } from "./figures.ts";

/** A request that was opened in the books, and how far it has come. */
export interface LiveRequest {
  /** As it was opened in the ledger. */
  readonly opening: Opening;
  /** Taken from the checked request, which is not kept. */
  readonly asked: Asked;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Undefined: it runs. */
  settlement: Settlement | undefined;
  /** Undefined: its response has not left, or the handler was faster than the response. */
  record: AccessRecord | undefined;
}

/** Everything of a request that is no content. */
export const askedOf = (chat: ChatRequest): Asked => ({
  messages: chat.messages.length,
  tools: chat.tools?.length ?? 0,
  thinking: chat.wantsThinking,
  format: chat.response_format?.type ?? null,
  max_tokens: chat.maxTokens ?? null,
  temperature: chat.temperature ?? null,
});

const NOTHING_KNOWN = {
  ended: null,
  outcome: null,
  status: null,
  path: null,
  account: null,
  key: null,
  asked_model: null,
  model: null,
  provider: null,
  stream: null,
  code: null,
  param: null,
  asked: null,
  duration_ms: null,
  first_token_ms: null,
  finish_reason: null,
  prompt_tokens: null,
  cached_tokens: null,
  cache_write_tokens: null,
  completion_tokens: null,
  reasoning_tokens: null,
  usage_source: null,
  cost: null,
  currency: null,
  attempts: [],
} as const;

/** A request that runs. */
export const runningEntry = ({ opening, asked, startedAt }: LiveRequest): RequestEntry => ({
  ...NOTHING_KNOWN,
  id: opening.requestId,
  started: startedAt,
  account: opening.account,
  key: opening.keyId,
  asked_model: opening.modelRequested,
  stream: opening.stream,
  asked,
});

/** A stream that fails after its first event has the status 200, and is a failure all the same. */
export function outcomeIn(record: AccessRecord, settlement: Settlement | undefined): Outcome {
  if (settlement?.status === "cancelled") return "cancelled";
  if (settlement?.status === "failed" && record.status < 400) return "5xx";
  return outcomeOf(record.status);
}

/** A request whose response has left. `live` is undefined if it was refused before the books. */
export function endedEntry(record: AccessRecord, live: LiveRequest | undefined): RequestEntry {
  const ended = Date.parse(record.time);
  const settlement = live?.settlement;
  const entry: RequestEntry = {
    ...NOTHING_KNOWN,
    id: record.request_id,
    started: live?.startedAt ?? ended - record.duration_ms,
    ended,
    outcome: outcomeIn(record, settlement),
    status: record.status,
    path: record.path,
    account: record.account ?? null,
    key: record.key_id ?? null,
    asked_model: record.model_requested ?? null,
    code: record.error_code ?? settlement?.errorCode ?? null,
    param: record.param ?? null,
    duration_ms: record.duration_ms,
  };
  if (!live || !settlement) return entry;
  return { ...entry, ...chargeOf(settlement), stream: live.opening.stream, asked: live.asked };
}

function chargeOf(settlement: Settlement): Partial<RequestEntry> {
  const { usage, attempts } = settlement;
  const last = attempts.at(-1);
  return {
    model: settlement.modelServed ?? last?.model ?? null,
    provider: settlement.provider ?? last?.provider ?? null,
    first_token_ms: settlement.firstTokenMs,
    finish_reason: settlement.finishReason,
    prompt_tokens: usage.prompt_tokens,
    cached_tokens: usage.prompt_cache_hit_tokens,
    cache_write_tokens: usage.prompt_tokens_details.cache_write_tokens ?? 0,
    completion_tokens: usage.completion_tokens,
    reasoning_tokens: usage.completion_tokens_details.reasoning_tokens,
    usage_source: settlement.usageSource,
    cost: settlement.cost,
    currency: settlement.currency,
    attempts,
  };
}
