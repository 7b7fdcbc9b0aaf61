// Requests as the gateway tells an observer of them, for the tests of the history.

import type { RequestObserver } from "../../../../src/core/observer.ts";
import type { AccessRecord } from "../../../../src/core/http/exchange.ts";
import type { AttemptRecord, Opening, Settlement } from "../../../../src/core/ledger/ledger.ts";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import type { Recorder } from "../../../../src/extensions/operations/history/recorder.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";

export const chat = chatRequest({
  model: "m",
  messages: [{ role: "user", content: "secret words" }],
  max_tokens: 77,
});

export const attempt = (over: Partial<AttemptRecord> = {}): AttemptRecord => ({
  model: "m",
  provider: "lab",
  outcome: "completed",
  duration_ms: 400,
  ...over,
});

const settlementOf = (over: Partial<Settlement>): Settlement => ({
  status: "completed",
  httpStatus: 200,
  errorCode: null,
  finishReason: "stop",
  attempts: [attempt()],
  firstTokenMs: 100,
  modelServed: "m",
  provider: "lab",
  usage: {
    prompt_tokens: 10,
    completion_tokens: 20,
    total_tokens: 30,
    prompt_cache_hit_tokens: 4,
    prompt_cache_miss_tokens: 6,
    prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 2 },
    completion_tokens_details: { reasoning_tokens: 5 },
  },
  usageSource: "provider",
  cost: "0.5",
  currency: "USD",
  ...over,
});

const CHAT = "/v1/chat/completions";

/** What tells a recorder of requests, at the time of a clock. */
export function teller({ observe }: Recorder, clock: FakeClock) {
  let serial = 0;
  /** By their openings. */
  const observers = new Map<Opening, RequestObserver>();

  const record = (over: Partial<AccessRecord>): AccessRecord => ({
    time: new Date(clock.now()).toISOString(),
    request_id: `req_${serial}`,
    method: "POST",
    path: CHAT,
    status: 200,
    duration_ms: 500,
    account: "acme",
    key_id: "key_1",
    model: "m",
    ...over,
  });

  function open(over: Partial<Opening> = {}): Opening {
    serial += 1;
    const opening = {
      requestId: `req_${serial}`,
      account: "acme",
      keyId: "key_1",
      modelRequested: "auto/m",
      stream: true,
      ...over,
    };
    const observer = observe();
    observers.set(opening, observer);
    observer.opened?.(opening, chat);
    return opening;
  }

  function settle(opening: Opening, over: Partial<Settlement> = {}): Settlement {
    const settlement = settlementOf(over);
    observers.get(opening)?.settled?.(opening, settlement, 500);
    return settlement;
  }

  function leave(opening: Opening, over: Partial<AccessRecord> = {}): void {
    const { requestId: request_id, account, keyId: key_id } = opening;
    const left = record({ request_id, account, key_id, provider: "lab", ...over });
    observers.get(opening)?.responded?.(CHAT, left);
  }

  return {
    open,
    settle,
    leave,
    /** A request that goes well. */
    fine(over: Partial<Opening> = {}, settlement: Partial<Settlement> = {}): void {
      const opening = open(over);
      settle(opening, settlement);
      leave(opening);
    },
    /** A request that is refused before the books. */
    refuse(over: Partial<AccessRecord> = {}): void {
      serial += 1;
      const limited = { status: 429, error_code: "rate_limit_exceeded", duration_ms: 1 };
      observe().responded?.(CHAT, record({ ...limited, ...over }));
    },
    /** A response at another route. */
    respond: (route: string, over: Partial<AccessRecord> = {}) =>
      observe().responded?.(route, record(over)),
  };
}
