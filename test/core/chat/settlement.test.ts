// The settlement of a request, where tests over HTTP cannot see it: when its holds are released,
// its times, and the model of a client that left.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AcceptedRequest, ChatServices } from "../../../src/core/chat/context.ts";
import { openInLedger } from "../../../src/core/chat/settlement.ts";
import type { LogFields } from "../../../src/core/http/exchange.ts";
import type { Ledger, Opening, Settlement } from "../../../src/core/ledger/ledger.ts";
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
  price,
  cost: 120_000_000n,
  finishReason: "stop",
};
const COMPLETED = { status: "completed", httpStatus: 200, errorCode: null } as const;
const CANCELLED = { status: "cancelled", httpStatus: 499, errorCode: null } as const;

function setUp(more: Partial<AcceptedRequest> = {}, ledger: Partial<Ledger> = {}) {
  const clock = createFakeClock();
  clock.advance(1_000);
  const log: LogFields = {};
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
      open() {
        const settle = async (settlement: Settlement) => {
          settled.push(settlement);
        };
        return { opened: Promise.resolve(), settle };
      },
      ...ledger,
    },
  } as unknown as ChatServices;
  const settlement = openInLedger(request, services);
  return { clock, log, settled, durations, settlement, released: () => released };
}

describe("the settlement of a request", () => {
  it("releases the hold of a request that cannot be opened", () => {
    const given: unknown[] = [];
    const settle = (settlement: unknown) => given.push(settlement);
    const hold = { amount: "0.5", id: undefined, settle };
    const unavailable = new Error("the disk is full");
    const open = () => {
      throw unavailable;
    };
    assert.throws(() => setUp({ hold }, { open }), unavailable);
    assert.deepEqual(given, [undefined]);
  });

  it("happens once, releases the slot before the ledger has written, and states the times", async () => {
    const { clock, settlement, settled, durations, released } = setUp();
    clock.advance(500);
    const first = settlement.settle(replied, COMPLETED);
    assert.equal(released(), 1);
    assert.equal(settlement.settle(replied, CANCELLED), first);
    await first;
    const { status, firstTokenMs } = settled[0]!;
    assert.deepEqual(
      [settled.length, status, firstTokenMs, durations],
      [1, "completed", 250, [500]],
    );
  });

  it("waits for the ledger's line, and then releases the hold", async () => {
    let write = () => {};
    const written = new Promise<void>((resolve) => {
      write = resolve;
    });
    const events: string[] = [];
    const hold = { amount: "0.5", id: undefined, settle: () => events.push("given back") };
    const open = () => ({ opened: Promise.resolve(), settle: () => written });
    const { settlement } = setUp({ hold }, { open });
    const settling = settlement.settle(replied, COMPLETED).then(() => events.push("settled"));
    await turn();
    assert.deepEqual(events, []);
    write();
    await settling;
    assert.deepEqual(events, ["given back", "settled"]);
  });

  for (const [name, attempts, modelServed] of [
    ["names the model that was being called when the client left", [attempt], "m"],
    ["names no model if the client left before one was called", [], null],
  ] as const)
    it(name, async () => {
      const { settlement, settled, log } = setUp();
      await settlement.settle({ ...notStarted(model), attempts }, CANCELLED);
      assert.equal(settled[0]!.modelServed, modelServed);
      assert.deepEqual(log, { provider: attempts.length > 0 ? "lab" : null });
    });
});
