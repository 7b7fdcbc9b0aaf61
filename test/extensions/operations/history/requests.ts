// A history of one process, and requests as the gateway reports them to observers.

import type { RequestObserver } from "../../../../src/core/observer.ts";
import type { AccessRecord } from "../../../../src/core/http/exchange.ts";
import type { AttemptRecord, Opening, Settlement } from "../../../../src/core/ledger/ledger.ts";
import { chatRequest } from "../../../../src/core/openai/request.ts";
import { makeUsage } from "../../../../src/core/openai/usage.ts";
import { createHistory } from "../../../../src/extensions/operations/history/history.ts";
import { startRecorder } from "../../../../src/extensions/operations/history/recorder.ts";
import { startCounting } from "../../../../src/extensions/operations/metrics/counting.ts";
import { dropIdle, type Tally } from "../../../../src/extensions/operations/metrics/tally.ts";
import type { InstallationStatus } from "../../../../src/extensions/scale/installation/index.ts";
import { createFakeClock, type FakeClock } from "../../../support/fake-clock.ts";
import { SETTLEMENT } from "../../../support/spend-log.ts";

const chat = chatRequest({
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

const OPENING = { account: "acme", keyId: "key_1", modelRequested: "auto/m", stream: true };

const SETTLED: Settlement = {
  ...{ ...SETTLEMENT, endedAt: 0, attempts: [attempt()], firstTokenMs: 100, cost: "0.5" },
  usage: makeUsage({ prompt: 10, completion: 20, cacheHit: 4, cacheWrite: 2, reasoning: 5 }),
};

const CHAT = "/v1/chat/completions";

/** The observers that count and record the requests of a process. */
export function startProcess(clock: Pick<FakeClock, "now">, name = "one") {
  const tally: Tally = new Map();
  const counting = startCounting(tally);
  const recorder = startRecorder(clock as FakeClock);
  return {
    observers: (): readonly RequestObserver[] => [counting(undefined), recorder.observe()],
    // A copy, as received from another process.
    report() {
      dropIdle(tally);
      const metrics = { process: name, tally };
      return structuredClone({ metrics, history: recorder.report() });
    },
  };
}

export const lookOf = (extensions: readonly Readonly<Record<string, unknown>>[], inFlight = 0) => ({
  status: {} as InstallationStatus["status"],
  delays: {},
  reports: extensions.map((each) => ({
    ...{ draining: false, inFlight, droppedLines: { access: 0, diagnostics: 0 } },
    extensions: each,
  })),
});

/** A quarter of an hour, at which bins of all levels begin. */
export const START = Date.parse("2026-11-22T09:00:00Z");
export const MINUTE = 60_000;
const LOOK_MS = 2_500;

export function bench(start = START) {
  const clock = createFakeClock(start);
  let setBack = 0;
  const shifted = { ...clock, now: () => clock.now() - setBack };
  const process = startProcess(shifted);
  const history = createHistory(shifted);
  const look = (inFlight = 0): void => history.add(lookOf([process.report()], inFlight));
  return {
    ...history,
    clock,
    process,
    look,
    tell: teller(process.observers, clock),
    /** Advances the clock with regular looks, as in a running gateway. */
    pass(ms = LOOK_MS): void {
      for (let left = ms; left > 0; left -= LOOK_MS) {
        clock.advance(Math.min(left, LOOK_MS));
        look();
      }
    },
    setBack(ms: number): void {
      setBack = ms;
    },
  };
}

/** Reports requests to the observers of a process, at the time of a clock. */
export function teller(observersOf: () => readonly RequestObserver[], clock: FakeClock) {
  let serial = 0;
  const observers = new Map<Opening, readonly RequestObserver[]>();
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
    const opening = { ...OPENING, requestId: `req_${serial}`, ...over };
    const all = observersOf();
    observers.set(opening, all);
    for (const observer of all) observer.opened?.(opening, chat);
    return opening;
  }

  function settle(opening: Opening, over: Partial<Settlement> = {}): void {
    const settlement = { ...SETTLED, ...over };
    for (const observer of observers.get(opening)!) observer.settled?.(opening, settlement, 500);
  }

  function leave(opening: Opening, over: Partial<AccessRecord> = {}): void {
    const { requestId: request_id, account, keyId: key_id } = opening;
    const left = record({ request_id, account, key_id, provider: "lab", ...over });
    for (const observer of observers.get(opening)!) observer.responded?.(CHAT, left);
  }

  function respond(route: string, over: Partial<AccessRecord> = {}): void {
    for (const observer of observersOf()) observer.responded?.(route, record(over));
  }

  return {
    open,
    settle,
    leave,
    /** Reports a successful request. */
    fine(over: Partial<Opening> = {}, settlement: Partial<Settlement> = {}): void {
      const opening = open(over);
      settle(opening, settlement);
      leave(opening);
    },
    /** Reports a request that is rejected before it is opened in the books. */
    refuse(over: Partial<AccessRecord> = {}): void {
      serial += 1;
      const limited = { status: 429, error_code: "rate_limit_exceeded", duration_ms: 1 };
      respond(CHAT, { ...limited, ...over });
    },
    respond,
  };
}
