// From the texts of events to parts: what is delivered, when, and the effect of an error. And how
// large a reply may be (server.max_reply_bytes), whole or assembled from a stream.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Cancel } from "../../../src/core/http/cancel.ts";
import { createEventReader } from "../../../src/core/http/event-reader.ts";
import { Meter } from "../../../src/core/ledger/meter.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { waitForTurn } from "../../../src/core/turns.ts";
import { Deadlines } from "../../../src/core/routing/deadlines.ts";
import { EventDecoding, pump, type TakeParts } from "../../../src/core/routing/stream.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import {
  configFor,
  json,
  readStream,
  startGateway,
  startWith,
  user,
} from "../../support/gateway.ts";
import {
  type Behaviour,
  chunk,
  completion,
  event as sse,
  status,
  stream,
  startProvider,
  usageChunk,
} from "../../support/provider.ts";
import { chatOf, TIMEOUTS, turn } from "../../support/routing.ts";
import { timersOnCall } from "../../support/unhurried-clock.ts";
import { waitFor } from "../../support/wait.ts";

const text = (words: string): Part => ({ type: "text", text: words });
const usage: Part = {
  type: "usage",
  usage: { prompt: 5, completion: 2, cacheHit: 0, reasoning: 0 },
};

/**
 * Events are lists of parts, as JSON; `{"error":true}` is a provider's error, `{"bug":true}` a bug
 * of the gateway.
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
  it("emits nothing before the first content", () => {
    const { decoding, say } = setUp();
    assert.equal(say([usage]), false);
    assert.deepEqual(decoding.takeParts(), []);
    assert.equal(say([text("a")]), true);
    assert.deepEqual(decoding.takeParts(), [usage, text("a")]);
    assert.deepEqual(decoding.takeParts(), []);
  });

  it("decodes no further event after a bug of the gateway", () => {
    const { decoding, say } = setUp();
    say([text("a")], { bug: true }, [usage]);
    assert.deepEqual(decoding.takeParts(), [text("a")]);
  });

  const parts = (count: number) => Array.from({ length: count }, () => text("a"));
  const call = (id = ""): Part[] => [{ type: "tool_call", call: 0, id, name: "f" }];
  const silent = Array.from({ length: 4 }, () => [{ ...usage, more: "x".repeat(1_000_000) }]);
  for (const [what, within, beyond] of [
    ["10000 parts at once", [parts(10_000)], [parts(10_001)]],
    ["10000 tool calls", Array.from({ length: 10_000 }, () => call()), [call()]],
    ["10000 tool calls", [], [call("x".repeat(10_240_000))]], // each KiB of an id is one more
    ["4 MiB without content", silent, silent],
  ] as const)
    it(`rejects more than ${what}`, () => {
      const { decoding, say } = setUp();
      say(...within);
      assert.equal(decoding.error, undefined);
      say(...beyond);
      assert.ok(String(decoding.error).endsWith(`more than ${what}`), String(decoding.error));
    });

  it("accepts 4 MiB after the first content, and in events without parts", () => {
    const { decoding, say } = setUp();
    decoding.push([`[${" ".repeat(5_000_000)}]`]); // nothing of it is kept
    say(...silent, [text("a")], ...silent);
    assert.equal(decoding.error, undefined);
  });
});

const event = (words: string): Buffer => Buffer.from(`data: ${JSON.stringify([text(words)])}\n\n`);

/** Pumps the output of `body`, with deadlines on `clock`. */
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

it("the pump delivers nothing that arrives after the attempt has ended", async () => {
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

it("the pump starts no deadline if a client gets room after the attempt has ended", async () => {
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

it("a refusal's body gets one second, whatever time the attempt has left, and ends with the refusal", () => {
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

it("a deadline that expires while this process is suspended waits for figures that have arrived", async (t) => {
  const clock = timersOnCall(4_321);
  const over = { timeouts: { closing_ms: 4_321 } };
  const finished = stream([chunk({ content: "Once" }), chunk({}, "stop")], "open");
  const { chat, provider } = await startWith(t, { m: finished }, over, clock);
  const asked = { stream: true, stream_options: { include_usage: true } };
  const reply = await chat({ model: "m", messages: user("hi"), ...asked });
  (await provider.nth(0)).res.end(sse(usageChunk({ prompt_tokens: 70 })));
  await new Promise(process.nextTick); // they are written, but not read yet
  clock.fire();
  const { chunks } = await readStream(reply);
  assert.equal(chunks.at(-1)!.usage.prompt_tokens, 70);
});

it("a deadline that expires while this process is suspended waits for data with its own turn, and no longer", async () => {
  const clock = createFakeClock();
  const expired: string[] = [];
  const times = { timeouts: TIMEOUTS, attemptMs: undefined };
  const deadlines = new Deadlines(clock, times, ({ message }) => expired.push(message));
  deadlines.restart("idle_ms");
  clock.advance(TIMEOUTS.idle_ms);
  await Promise.resolve().then(() => waitForTurn()); // Reading comes after the timers.
  deadlines.restart("idle_ms");
  for (let turns = 0; turns < 3; turns += 1) await turn();
  assert.deepEqual(expired, []);
  clock.advance(TIMEOUTS.idle_ms);
  await waitFor(() => expired.length > 0, "the deadline to be over");
  assert.deepEqual(expired, [`idle_ms of ${TIMEOUTS.idle_ms} ms is over`]);
});

const BOUND = 20_000;
const TEXT = "x".repeat(30_000);

/** A whole reply of exactly this many bytes. */
function replyOf(bytes: number): string {
  const text = JSON.stringify(completion({ content: "" }));
  return text.replace('"content":""', `"content":"${"y".repeat(bytes - text.length)}"`);
}

async function serving(t: TestContext, behaviour: Behaviour, model: object = {}) {
  const provider = await startProvider(t, behaviour);
  const gw = await startGateway(
    t,
    configFor(provider.url, ["m"], {
      server: { max_reply_bytes: BOUND },
      models: { m: model },
      retry: { max_retries: 0 },
    }),
  );
  const ask = (more: object = {}) => gw.chat({ model: "m", messages: user("hi"), ...more });
  /**
   * The reply is rejected: the operator is told why, the client is not, and no failure is counted.
   */
  const refused = async () => {
    const response = await ask();
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [503, "upstream_error"]);
    assert.doesNotMatch(error.message, /bytes/);
    const told = gw.diagnostics.map(({ detail }) => String(detail)).join();
    assert.ok(told.includes(`a reply of more than ${BOUND} bytes`), told);
    assert.deepEqual(gw.breakerOf("m"), ["closed", 0], "a long reply is no provider failure");
  };
  return { ask, refused };
}

describe("server.max_reply_bytes", () => {
  it("accepts a whole reply of exactly that size, and rejects one byte more", async (t) => {
    const passing = await serving(t, status(200, replyOf(BOUND)));
    const { choices } = await json(await passing.ask());
    assert.ok(choices[0].message.content.length > BOUND - 1_000);
    const { refused } = await serving(t, status(200, replyOf(BOUND + 1)));
    await refused();
  });

  it("bounds a stream that is assembled for a client without streaming", async (t) => {
    const large = stream([chunk({ content: TEXT }), chunk({}, "stop")]);
    const { refused } = await serving(t, large, { stream_only: true });
    await refused();
  });

  it("does not bound a stream that the client reads", async (t) => {
    const { ask } = await serving(t, stream([chunk({ content: TEXT }), chunk({}, "stop")]));
    const { chunks, done } = await readStream(await ask({ stream: true }));
    assert.equal(chunks.map(({ choices }) => choices[0]?.delta["content"] ?? "").join(""), TEXT);
    assert.ok(done);
  });
});
