// Records the running requests of one process and those that ended last, without message content.
// Each report repeats the last ended requests, numbered: if a report is lost, its reader misses
// none, and it skips those that it has already.
import type { Clock } from "../../../core/clock.ts";
import type { AccessRecord } from "../../../core/http/exchange.ts";
import { randomHex } from "../../../core/ids.ts";
import type { Opening, Settlement } from "../../../core/ledger/ledger.ts";
import type { RequestObserver } from "../../../core/observer.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import { isCounted, isRefused, outcomeOf, type Outcome } from "../metrics/index.ts";
import { createLastFaults, type ModelFault } from "./last.ts";

/** A request that was opened in the ledger. */
interface LiveRequest {
  /** The request's opening in the ledger. */
  readonly opening: Opening;
  /** Copied from the request, so that its content can be freed. */
  readonly asked: ReturnType<typeof propertiesOf>;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Undefined: the request is running. */
  settlement: Settlement | undefined;
}

/** The properties of a request without its content. */
const propertiesOf = (chat: ChatRequest) => ({
  messages: chat.messages.length,
  tools: chat.tools?.length ?? 0,
  thinking: chat.wantsThinking,
  format: chat.response_format?.type ?? null,
  max_tokens: chat.maxTokens ?? null,
  temperature: chat.temperature ?? null,
});

/** A request in the answer of GET /requests. Null: unknown or not applicable. */
export type RequestEntry = ReturnType<typeof entryOf>;

/** The entry of a running request. */
const runningEntry = (live: LiveRequest): RequestEntry => {
  const { requestId, account, keyId, modelRequested } = live.opening;
  const known = { request_id: requestId, account, key_id: keyId, model_requested: modelRequested };
  return entryOf(known, live, null);
};

/** The entry of an ended request. `live` is undefined if the ledger never opened it. */
const endedEntry = (record: AccessRecord, live: LiveRequest | undefined): RequestEntry =>
  entryOf(record, live, outcomeOf(record));

function entryOf(
  record: Partial<AccessRecord> & Pick<AccessRecord, "request_id">,
  live: LiveRequest | undefined,
  outcome: Outcome | null,
) {
  const { opening, asked, startedAt, settlement } = live ?? {};
  const ended = record.time === undefined ? null : Date.parse(record.time);
  return {
    id: record.request_id,
    started: startedAt ?? (ended ?? 0) - (record.duration_ms ?? 0),
    ended,
    outcome,
    status: record.status ?? null,
    path: record.path ?? null,
    account: record.account ?? null,
    key: record.key_id ?? null,
    asked_model: record.model_requested ?? null,
    stream: opening?.stream ?? null,
    code: record.error_code ?? settlement?.errorCode ?? null,
    param: record.param ?? null,
    asked: asked ?? null,
    duration_ms: record.duration_ms ?? null,
    ...settlementFields(settlement),
  };
}

/** The fields that are known once a request is settled. */
function settlementFields(settlement: Settlement | undefined) {
  const { attempts = [], usage } = settlement ?? {};
  const { cache_write_tokens: written = 0 } = usage?.prompt_tokens_details ?? {};
  return {
    /** The model that served, or else the last one that was tried. */
    model: settlement?.modelServed ?? attempts.at(-1)?.model ?? null,
    provider: settlement?.provider ?? attempts.at(-1)?.provider ?? null,
    first_token_ms: settlement?.firstTokenMs ?? null,
    finish_reason: settlement?.finishReason ?? null,
    prompt_tokens: usage?.prompt_tokens ?? null,
    cached_tokens: usage?.prompt_cache_hit_tokens ?? null,
    cache_write_tokens: usage ? written : null,
    completion_tokens: usage?.completion_tokens ?? null,
    reasoning_tokens: usage?.completion_tokens_details.reasoning_tokens ?? null,
    usage_source: settlement?.usageSource ?? null,
    cost: settlement?.cost ?? null,
    currency: settlement?.currency ?? null,
    attempts,
  };
}

/** Each kind has a list of its own, so a flood of one kind evicts none of the others. */
type Kind = "fine" | "refused" | "failed";

export function kindOf({ outcome }: RequestEntry): Kind {
  if (outcome === "5xx") return "failed";
  return outcome !== null && isRefused(outcome) ? "refused" : "fine";
}

/** An empty list for each kind. */
export const byKind = <T>(): Record<Kind, T[]> => ({ fine: [], refused: [], failed: [] });

/** Appends an item and keeps the last `max`. */
export function pushBounded<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.shift();
}

/** The most ended requests of each kind in a report. Reports are collected every few seconds. */
const MAX_ENDED = 100;
/** The most running requests in a report. */
const MAX_RUNNING = 200;

/** The report of one process, as data that can be cloned. */
export interface ProcessReport {
  /** A random id, new at each start of the process. */
  readonly process: string;
  /** The last ended requests of each kind, the oldest first, numbered from 1. */
  readonly ended: readonly (readonly [number: number, entry: RequestEntry])[];
  /** How many requests have ended since the start of the process. */
  readonly endedCount: number;
  /** The last fault of each model, even if `ended` no longer has the request. */
  readonly faults: readonly ModelFault[];
  /** The running requests, oldest first; at most MAX_RUNNING. */
  readonly running: readonly RequestEntry[];
  /** The number of all running requests. */
  readonly runningCount: number;
}

export function startRecorder(clock: Clock) {
  const process = randomHex(8);
  const running = new Set<LiveRequest>();
  const ended = byKind<ProcessReport["ended"][number]>();
  const faults = createLastFaults();
  let number = 0;

  function end(record: AccessRecord, live: LiveRequest | undefined): void {
    const entry = endedEntry(record, live);
    number += 1;
    pushBounded(ended[kindOf(entry)], [number, entry], MAX_ENDED);
  }

  return {
    /** The observer of one request. */
    observe(): RequestObserver {
      let live: LiveRequest | undefined;
      let accessRecord: AccessRecord | undefined;
      return {
        opened(opening, chat) {
          const startedAt = clock.now();
          live = { opening, asked: propertiesOf(chat), startedAt, settlement: undefined };
          running.add(live);
        },
        settled({ requestId }, settlement) {
          faults.addOf(requestId, settlement.attempts, clock.now());
          if (!live) return;
          running.delete(live);
          live.settlement = settlement;
          if (accessRecord) end(accessRecord, live);
        },
        responded(route, record) {
          if (!isCounted(route, record)) return;
          // The client disconnected while the provider was still sending: wait for the settlement.
          if (live && !live.settlement) accessRecord = record;
          else end(record, live);
        },
      };
    },
    report: (): ProcessReport => ({
      process,
      ended: Object.values(ended).flat(),
      endedCount: number,
      faults: faults.all(),
      running: [...running].slice(0, MAX_RUNNING).map(runningEntry),
      runningCount: running.size,
    }),
  };
}
