// What a request came to, as the ledger, the access log and the observer hear of it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AcceptedRequest, ChatServices } from "../../../src/core/chat/context.ts";
import { openInLedger } from "../../../src/core/chat/settlement.ts";
import type { LogFields } from "../../../src/core/http/exchange.ts";
import type { Ledger, LedgerEntry, Opening, Settlement } from "../../../src/core/ledger/ledger.ts";
import { makeUsage } from "../../../src/core/openai/usage.ts";
import { notStarted, type RequestProgress } from "../../../src/core/routing/fallback.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { catalogOf, chatOf, settingsFor, turn } from "../../support/routing.ts";

const price = { input_cache_miss: 1, output: 2 };
const model = catalogOf(settingsFor({ m: { price } })).models.get("m")!;
const usage = makeUsage({ prompt: 100, completion: 10, cacheHit: 0, reasoning: 0 });
const attempt = { model: "m", provider: "lab", outcome: "completed", duration_ms: 400 };
const replied: RequestProgress = {
  model,
  attempts: [attempt],
  begunAt: 1_250,
  reading: { usage, source: "provider" },
  cost: 120_000_000n,
  finishReason: "stop",
};
const COMPLETED = { status: "completed", httpStatus: 200, errorCode: null } as const;
const CANCELLED = { status: "cancelled", httpStatus: 499, errorCode: null } as const;
const FAILED = { status: "failed", httpStatus: 503, errorCode: "model_unavailable" } as const;

function setUp(
  entry: Partial<LedgerEntry> = {},
  more: Partial<AcceptedRequest> = {},
  ledger: Partial<Ledger> = {},
) {
  const clock = createFakeClock();
  clock.advance(1_000);
  const log: LogFields = {};
  const opened: Opening[] = [];
  const settled: Settlement[] = [];
  const durations: number[] = [];
  let released = 0;
  const request = {
    exchange: { log, requestId: "req_1" },
    caller: { account: "acme", keyId: "key_1" },
    chat: chatOf(),
    config: { currency: "EUR" },
    startedAt: clock.monotonic(),
    observers: [
      { settled: (_opening: Opening, _settlement: Settlement, ms: number) => durations.push(ms) },
    ],
    releaseSlot: () => {
      released += 1;
    },
    ...more,
  } as unknown as AcceptedRequest;
  const services = {
    clock,
    ledger: {
      open(opening: Opening) {
        opened.push(opening);
        const settle = async (settlement: Settlement) => {
          settled.push(settlement);
        };
        return { opened: Promise.resolve(), settle, ...entry };
      },
      ...ledger,
    },
  } as unknown as ChatServices;
  const settlement = openInLedger(request, services);
  return { clock, log, opened, settled, durations, settlement, released: () => released };
}

describe("the settlement of a request", () => {
  it("gives back what is held, once, with what the request came to", async () => {
    const given: unknown[] = [];
    const token = "0123456789abcdef01234567";
    const settle = (settlement: unknown) => given.push(settlement);
    const { opened, settlement, settled } = setUp({}, { hold: { amount: "0.5", token, settle } });
    const by = { requestId: "req_1", account: "acme", keyId: "key_1" };
    const about = { modelRequested: "auto/test", stream: false, hold: "0.5", token };
    assert.deepEqual(opened, [{ ...by, ...about }]);
    await settlement.settle(replied, COMPLETED);
    await settlement.settle(notStarted(model), FAILED);
    assert.deepEqual(given, settled);
    assert.equal(settled.length, 1);
  });

  it("gives back what is held for a request that cannot be opened", () => {
    const given: unknown[] = [];
    const settle = (settlement: unknown) => given.push(settlement);
    const hold = { amount: "0.5", token: undefined, settle };
    const unavailable = new Error("the disk is full");
    const open = () => {
      throw unavailable;
    };
    assert.throws(() => setUp({}, { hold }, { open }), unavailable);
    assert.deepEqual(given, [undefined]);
  });

  it("tells the ledger when the reply began, and observers how long all took", async () => {
    const { clock, settlement, settled, durations } = setUp();
    clock.advance(500);
    await settlement.settle(replied, COMPLETED);
    assert.deepEqual([settled[0]!.firstTokenMs, durations], [250, [500]]);
  });

  it("happens once, and gives back the slot before the ledger has written", async () => {
    const { settlement, settled, released } = setUp();
    const first = settlement.settle(replied, COMPLETED);
    assert.equal(released(), 1);
    assert.equal(settlement.settle(replied, FAILED), first);
    await first;
    assert.deepEqual(
      settled.map(({ status }) => status),
      ["completed"],
    );
  });

  for (const [name, outcome, attempts, modelServed] of [
    ["names no model where none began", FAILED, [attempt], null],
    ["names the model that was being asked when its client left", CANCELLED, [attempt], "m"],
    ["names no model when the client left before one was asked", CANCELLED, [], null],
  ] as const)
    it(name, async () => {
      const { settlement, settled, log } = setUp();
      await settlement.settle({ ...notStarted(model), attempts }, outcome);
      const [{ cost, usageSource, firstTokenMs, ...settledAs }] = settled as [Settlement];
      assert.deepEqual(
        [settledAs.modelServed, cost, usageSource, firstTokenMs],
        [modelServed, "0", "none", null],
      );
      assert.deepEqual(log, { provider: attempts.length > 0 ? "lab" : null });
    });

  it("waits for the ledger's line, and gives back what is held after it", async () => {
    let write = () => {};
    const written = new Promise<void>((resolve) => {
      write = resolve;
    });
    const events: string[] = [];
    const hold = { amount: "0.5", token: undefined, settle: () => events.push("given back") };
    const { settlement } = setUp({ settle: () => written }, { hold });
    const settling = settlement.settle(replied, COMPLETED).then(() => events.push("settled"));
    await turn();
    assert.deepEqual(events, []);
    write();
    await settling;
    assert.deepEqual(events, ["given back", "settled"]);
  });
});
