// The record of one request: made from the events of the gateway when it is opened in the books,
// when it is settled, and when its response has left. Nothing of it is content.
import type { AccessRecord } from "../../../core/http/exchange.ts";
import type { Opening, Settlement } from "../../../core/ledger/ledger.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Usage } from "../../../core/openai/usage.ts";
import type { Outcome } from "./figures.ts";

/** A request that was opened in the books, and how far it has come. */
export interface LiveRequest {
  /** As it was opened in the ledger. */
  readonly opening: Opening;
  /** Taken from the checked request, which is not kept. */
  readonly asked: ReturnType<typeof askedOf>;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Undefined: it runs. */
  settlement: Settlement | undefined;
  /** Undefined: its response has not left, or the handler was faster than the response. */
  record: AccessRecord | undefined;
}

/** Everything of a request that is no content. */
export const askedOf = (chat: ChatRequest) => ({
  messages: chat.messages.length,
  tools: chat.tools?.length ?? 0,
  thinking: chat.wantsThinking,
  format: chat.response_format?.type ?? null,
  max_tokens: chat.maxTokens ?? null,
  temperature: chat.temperature ?? null,
});

/** A request as it is shown. A null is something that is not known or does not exist. */
export type RequestEntry = ReturnType<typeof entryOf>;

/** A request that runs. */
export const runningEntry = (live: LiveRequest): RequestEntry => {
  const { requestId, account, keyId, modelRequested } = live.opening;
  const known = { request_id: requestId, account, key_id: keyId, model_requested: modelRequested };
  return entryOf(known, live, null);
};

/** A request whose response has left. `live` is undefined if it was refused before the books. */
export const endedEntry = (record: AccessRecord, live: LiveRequest | undefined): RequestEntry =>
  entryOf(record, live, outcomeIn(record, live?.settlement));

function entryOf(
  record: Partial<AccessRecord> & Pick<AccessRecord, "request_id">,
  live: LiveRequest | undefined,
  outcome: Outcome | null,
) {
  const { time, duration_ms: duration = 0 } = record;
  const ended = time === undefined ? null : Date.parse(time);
  return {
    id: record.request_id,
    started: live?.startedAt ?? (ended ?? 0) - duration,
    ended,
    outcome,
    status: record.status ?? null,
    path: record.path ?? null,
    account: record.account ?? null,
    key: record.key_id ?? null,
    asked_model: record.model_requested ?? null,
    stream: live?.opening.stream ?? null,
    code: record.error_code ?? live?.settlement?.errorCode ?? null,
    param: record.param ?? null,
    asked: live?.asked ?? null,
    duration_ms: record.duration_ms ?? null,
    ...workOf(live?.settlement),
  };
}

/** What the providers did for a request. */
function workOf(settlement: Settlement | undefined) {
  const { attempts = [], usage } = settlement ?? {};
  const last = attempts.at(-1);
  return {
    /** The model that served, or the last that was asked. */
    model: settlement?.modelServed ?? last?.model ?? null,
    provider: settlement?.provider ?? last?.provider ?? null,
    first_token_ms: settlement?.firstTokenMs ?? null,
    finish_reason: settlement?.finishReason ?? null,
    ...tokensOf(usage),
    usage_source: settlement?.usageSource ?? null,
    cost: settlement?.cost ?? null,
    currency: settlement?.currency ?? null,
    attempts,
  };
}

const tokensOf = (usage: Usage | undefined) => ({
  prompt_tokens: usage?.prompt_tokens ?? null,
  cached_tokens: usage?.prompt_cache_hit_tokens ?? null,
  cache_write_tokens: usage ? (usage.prompt_tokens_details.cache_write_tokens ?? 0) : null,
  completion_tokens: usage?.completion_tokens ?? null,
  reasoning_tokens: usage?.completion_tokens_details.reasoning_tokens ?? null,
});

/** A stream that fails after its first event has the status 200, and is a failure all the same. */
export function outcomeIn({ status }: AccessRecord, settlement: Settlement | undefined): Outcome {
  if (settlement?.status === "cancelled" || status === 499) return "cancelled";
  if (status >= 500) return "5xx";
  if (status >= 400) return NAMED.find((name) => name === String(status)) ?? "4xx";
  return settlement?.status === "failed" ? "5xx" : "ok";
}

const NAMED = ["401", "402", "429"] as const;

/**
 * The kinds of requests that are kept apart, so that a flood of one kind does not push out the
 * others.
 */
export const KINDS = ["fine", "refused", "failed"] as const;
export type Kind = (typeof KINDS)[number];

export function kindOf(outcome: Outcome): Kind {
  if (outcome === "5xx") return "failed";
  return outcome === "ok" || outcome === "cancelled" ? "fine" : "refused";
}

/** A list of each kind. */
export const byKind = <T>(): Record<Kind, T[]> => ({ fine: [], refused: [], failed: [] });

/** Adds to a list that has its last `max` items. */
export function pushBounded<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.shift();
}
