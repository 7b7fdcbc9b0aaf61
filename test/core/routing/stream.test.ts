// From the texts of events to parts: what is delivered, when, and what an error changes.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { Meter } from "../../../src/core/ledger/meter.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { createEventReader } from "../../../src/core/http/event-reader.ts";
import { Deadlines } from "../../../src/core/routing/deadlines.ts";
import { EventDecoding, pump, type TakeParts } from "../../../src/core/routing/stream.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { chatOf, TIMEOUTS, turn } from "../../support/routing.ts";

const text = (words: string): Part => ({ type: "text", text: words });
const usage: Part = {
  type: "usage",
  usage: { prompt: 5, completion: 2, cacheHit: 0, reasoning: 0 },
};

/**
 * Events are lists of parts, as JSON; `{"error":true}` is a provider's error, `{"bug":true}` one of
 * ours.
 */
function setUp() {
  const meter = new Meter(chatOf(), () => 0);
  const push = (event: unknown): Part[] => {
    if (Array.isArray(event)) return event as Part[];
    const isBug = JSON.stringify(event) === '{"bug":true}';
    throw isBug ? new TypeError("broken") : new ProviderError("upstream_error", "broken");
  };
  const decoding = new EventDecoding({ push }, { meter, reportBug: () => undefined });
  const say = (...events: unknown[]) =>
    decoding.push(events.map((event) => (event === "[DONE]" ? event : JSON.stringify(event))));
  return { decoding, meter, say };
}

describe("the decoding of a stream's events", () => {
  it("gives out nothing before the first content", () => {
    const { decoding, say } = setUp();
    assert.equal(say([usage]), false);
    assert.deepEqual(decoding.takeParts(), []);
    assert.equal(say([text("a")]), true);
    assert.deepEqual(decoding.takeParts(), [usage, text("a")]);
    assert.deepEqual(decoding.takeParts(), []);
  });

  it("decodes no further event after a bug of this program", () => {
    const { decoding, say } = setUp();
    say([text("a")], { bug: true }, [usage]);
    assert.deepEqual(decoding.takeParts(), [text("a")]);
  });

  it("refuses more than 10,000 parts in an event", () => {
    const parts = (count: number) => Array.from({ length: count }, () => text("a"));
    const { decoding, say } = setUp();
    say(parts(10_000));
    assert.equal(decoding.error, undefined);
    say(parts(10_001));
    assert.match(String(decoding.error), /more than 10000 parts/);
  });
});

describe("the pump", () => {
  const event = (words: string): Buffer =>
    Buffer.from(`data: ${JSON.stringify([text(words)])}\n\n`);

  /** Pumps what `body` yields, with deadlines on `clock`. */
  function pumped(body: (cancel: Cancel) => AsyncGenerator<Uint8Array>, deliver: TakeParts) {
    const cancel = new Cancel();
    const clock = createFakeClock();
    const done = pump(body(cancel), setUp().decoding, {
      events: createEventReader(),
      cancel,
      deadlines: new Deadlines(clock, { timeouts: TIMEOUTS, attemptMs: undefined }, () => 0),
      clock,
      deliver,
      maxBytes: 1_000,
      retain: () => undefined,
      closingMs: 1_000,
    });
    return { done, clock };
  }

  it("delivers nothing that comes once the attempt was ended", async () => {
    const delivered: (readonly Part[])[] = [];
    async function* body(cancel: Cancel): AsyncGenerator<Uint8Array> {
      yield event("a");
      cancel.abort(new ProviderError("upstream_timeout", "too late"));
      yield event("b");
    }
    const { done } = pumped(body, (parts) => {
      delivered.push(parts);
      return undefined;
    });
    await assert.rejects(done, { message: "too late" });
    await turn();
    assert.deepEqual(delivered, [[text("a")]]);
  });

  it("starts no deadline when a client has room once the attempt was ended", async () => {
    let makeRoom = (): void => undefined;
    const room = new Promise<void>((resolve) => {
      makeRoom = resolve;
    });
    async function* body(cancel: Cancel): AsyncGenerator<Uint8Array> {
      setImmediate(() => cancel.abort(new Error("the client has left")));
      yield event("a");
    }
    const { done, clock } = pumped(body, () => room);
    await assert.rejects(done, { message: "the client has left" });
    makeRoom();
    await turn();
    assert.equal(clock.pending(), 0);
  });
});

it("a refusal's body has a second of its own, whatever time its attempt has, and ends with the refusal", () => {
  const clock = createFakeClock();
  const expired: string[] = [];
  const times = { timeouts: TIMEOUTS, attemptMs: 500 };
  const deadlines = new Deadlines(clock, times, ({ code }) => expired.push(code));
  deadlines.restart("first_token_ms");
  deadlines.refused(() => new ProviderError("model_overloaded", "status 429"));
  clock.advance(999);
  assert.deepEqual(expired, []);
  clock.advance(1);
  assert.deepEqual([expired, clock.pending()], [["model_overloaded"], 0]);
});
