// Fallback without network and waits, where fallback-gateway.test.ts cannot see it: times, turns of
// the event loop, which model the breaker blames, and what a client pays that leaves before any
// output, by the state of its provider at that moment.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel, ClientGone } from "../../../src/core/http/cancel.ts";
import { ApiError } from "../../../src/core/openai/errors.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { attempt, type RequestContext } from "../../../src/core/routing/attempt.ts";
import { CompletionError, completeWithFallback } from "../../../src/core/routing/fallback.ts";
import {
  breakOff,
  chatOf,
  lab,
  refuse,
  reply,
  silence,
  TIMEOUTS,
  turn,
  type Answer,
  type Lab,
} from "../../support/routing.ts";
import { piecesOf } from "../../support/raw-provider.ts";

type Run = ReturnType<typeof start>;

/** `room`: when the client has room after a batch. Undefined: it always has. */
function start(
  { models, clock }: Lab,
  hooks: Partial<RequestContext> = {},
  chat = chatOf(),
  room?: Promise<unknown>,
) {
  const cancel = new Cancel();
  const delivered: Part[] = [];
  const deliver = (parts: readonly Part[]) => {
    delivered.push(...parts);
    return room;
  };
  const result = completeWithFallback(chat, models, deliver, {
    config: {} as never, // Only extensions read the configuration.
    cancel,
    endsAt: clock.monotonic() + 900_000,
    account: "acme",
    large: false,
    retain: () => undefined,
    clock,
    report: () => undefined,
    observers: [],
    inFlight: () => 1,
    attempt,
    ...hooks,
  });
  result.catch(() => undefined);
  return { result, cancel, delivered };
}

/** Waits until a timer is pending, and advances the clock. */
async function pass({ clock }: Lab, ms: number): Promise<void> {
  for (let i = 0; i < 5; i += 1) await turn();
  clock.advance(ms);
}

async function failure(run: Run): Promise<CompletionError> {
  const error: unknown = await run.result.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CompletionError);
  return error;
}

describe("completeWithFallback", () => {
  it("yields to other work before each step of a large request", async () => {
    const world = lab({ a: [reply("Hi.")] });
    const run = start(world, { large: true });
    await turn();
    assert.deepEqual(world.asked, []);
    await run.result;
    assert.deepEqual(world.asked, ["a"]);
  });

  it("does not send a large request whose client left between its steps", async () => {
    const world = lab({ a: [] });
    const run = start(world, { large: true });
    run.cancel.abort(new ClientGone());
    assert.ok((await failure(run)).error instanceof ClientGone);
    assert.deepEqual(world.asked, []);
  });

  it("waits between half of backoff_ms and all of it, and twice as long the next time", async () => {
    const retry = { max_retries: 2, backoff_ms: 1_000, max_wait_ms: 3_000 };
    const world = lab({ a: [refuse(500), refuse(500), reply("Hi.")] }, { retry });
    const run = start(world);
    await pass(world, 499);
    await pass(world, 0);
    assert.equal(world.asked.length, 1);
    await pass(world, 501);
    await pass(world, 999);
    assert.equal(world.asked.length, 2);
    await pass(world, 1_001);
    assert.equal((await run.result).attempts.length, 3);
  });
});

/** A provider that the request never reaches. */
const unsent: Answer = ({ cancel }) =>
  new Promise((_, reject) => cancel.onAbort(() => reject(cancel.reason as Error)));

/** A stream that begins. */
const begun: Answer = async ({ sent, cancel }) => {
  sent();
  async function* body(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n');
    yield await new Promise<never>((_, reject) => cancel.onAbort(() => reject(cancel.reason)));
  }
  const get = (name: string) => (name === "content-type" ? "text/event-stream" : null);
  return { status: 200, headers: { get }, body: body() };
};

describe("completeWithFallback, cancelled", () => {
  it("ends the wait before a retry", async () => {
    const world = lab({ a: [refuse(500)] });
    const run = start(world);
    await pass(world, 0);
    assert.equal(world.clock.pending(), 1);
    run.cancel.abort(new ClientGone("left"));
    const { error, progress } = await failure(run);
    assert.ok(error instanceof ClientGone);
    assert.deepEqual(
      progress.attempts.map(({ outcome }) => outcome),
      ["upstream_error"],
    );
    assert.equal(world.clock.pending(), 0);
  });

  for (const [which, scripts] of [
    [
      "had a part of the request's time",
      { a: [refuse(503, null, { "retry-after": "9" })], b: [silence] },
    ],
    ["never had the request", { b: [unsent] }],
  ] as const)
    it(`does not blame a provider that ${which}`, async () => {
      const world = lab(scripts);
      const run = start(world);
      await pass(world, 0);
      run.cancel.abort(new ProviderError("upstream_timeout", "total_ms"));
      await failure(run);
      assert.equal(world.models.at(-1)!.status().failures, 0);
    });

  for (const [total_ms, ofUnsent] of [
    [6_000, 0],
    [TIMEOUTS.connect_ms, 1],
  ] as const)
    it(`blames ${ofUnsent} providers if total_ms of ${total_ms} ends before the request is sent`, async () => {
      const timeouts = { total_ms };
      const row = { vendor: "generic", dialect: "openai", base_url: "http://lab/v1", timeouts };
      const ofAll = { timeouts: { ...TIMEOUTS, total_ms } };
      for (const over of [{ providers: new Map([["lab", row]]) }, ofAll])
        for (const [answer, failures] of [
          [unsent, ofUnsent],
          [silence, 1],
        ] as const) {
          const world = lab({ a: [answer] }, over);
          const run = start(world);
          await pass(world, total_ms);
          if (over === ofAll) run.cancel.abort(new ProviderError("upstream_timeout", "total_ms"));
          await failure(run);
          assert.equal(world.models[0]!.status().failures, failures);
        }
    });

  for (const [which, room, failures] of [
    ["has room", undefined, 1],
    ["does not read", new Promise(() => undefined), 0],
  ] as const)
    it(`blames ${failures} providers if a stream reaches its provider's total_ms while the client ${which}`, async () => {
      const timeouts = { total_ms: 4_000 };
      const row = { vendor: "generic", dialect: "openai", base_url: "http://lab/v1", timeouts };
      const world = lab({ a: [begun] }, { providers: new Map([["lab", row]]) });
      const run = start(world, {}, chatOf({ stream: true }), room);
      await pass(world, 4_000);
      await failure(run);
      assert.equal(world.models[0]!.status().failures, failures);
    });
});

/** This answer. `ended` is called in the turn after its body ends. */
const ending =
  (answer: Answer, ended: () => void): Answer =>
  async (request) => {
    const response = await answer(request);
    async function* body() {
      yield* piecesOf(response.body!);
      setImmediate(ended);
    }
    return { ...response, body: body() };
  };

it("a whole reply has no deadline while it waits to be parsed", async () => {
  const large = reply("x".repeat(512 * 1024));
  const world: Lab = lab({ a: [ending(large, () => world.clock.advance(600_000))] });
  const { finishReason } = await start(world).result;
  assert.deepEqual([finishReason, world.clock.monotonic()], ["stop", 600_000]);
});

it("a whole reply is not delivered if there is no room for its values", async () => {
  const sizes: number[] = [];
  const retain = (bytes: number) => {
    sizes.push(bytes);
    if (sizes.length > 1) run.cancel.abort(new ApiError("server_overloaded", "No room."));
  };
  const large = reply("x".repeat(512 * 1024));
  const run: Run = start(lab({ a: [large] }), { retain });
  const { error } = await failure(run);
  assert.ok(error instanceof ApiError && error.code === "server_overloaded");
  assert.deepEqual([sizes.length, run.delivered], [2, []]);
});

const CHAT = chatOf({ model: "m", messages: [{ role: "user", content: "12345678" }] });
const PROMPT = ["estimated", 2, 2_000_000n];
const NOTHING = ["none", 0, 0n];

/** A response head with this status, whose body never arrives. */
const headOnly =
  (status: number): Answer =>
  async ({ sent, cancel }) => {
    sent();
    async function* body(): AsyncGenerator<Uint8Array> {
      yield await new Promise<never>((_, reject) => {
        cancel.onAbort(() => reject(cancel.reason as Error));
      });
    }
    const get = (name: string) => (name === "content-type" ? "application/json" : null);
    return { status, headers: { get }, body: body() };
  };

/** What is billed for these answers if `reason` ends the request during the last one. */
async function billed(answers: readonly Answer[], reason: Error = new ClientGone()) {
  const retry = { max_retries: 5, backoff_ms: 1, max_wait_ms: 3_000 };
  const world = lab(
    { m: answers },
    { retry },
    { m: { price: { input_cache_miss: 1, output: 2 } } },
  );
  const run = start(world, {}, CHAT);
  for (let count = 0; count < 50 && world.asked.length < answers.length; count += 1)
    await pass(world, 1);
  assert.equal(world.asked.length, answers.length);
  await pass(world, 0);
  run.cancel.abort(reason);
  const { reading, cost } = (await failure(run)).progress;
  return [reading.source, reading.usage.prompt_tokens, cost];
}

for (const [expected, answers] of [
  [PROMPT, [[silence], [headOnly(200)], [breakOff("ECONNRESET"), silence]]],
  [
    NOTHING,
    [
      [unsent],
      [headOnly(429)],
      [refuse(500), unsent],
      [refuse(500, null, { "retry-after": "2" })], // the client leaves during the wait
    ],
  ],
] as const)
  it(`a client that leaves before any output pays ${expected === PROMPT ? "for a prompt that a provider has" : "nothing if no provider has the prompt or the provider rejected it"}`, async () => {
    for (const [index, each] of answers.entries())
      assert.deepEqual(await billed(each), expected, `row ${index}`);
  });

it("a client that stays pays nothing for a failed request", async () => {
  assert.deepEqual(await billed([silence], new Error("the gateway closes")), NOTHING);
});
