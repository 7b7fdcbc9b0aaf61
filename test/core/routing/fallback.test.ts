// Fallback without a network and without waiting: which model is asked when, and what comes back.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel, ClientGone } from "../../../src/core/http/cancel.ts";
import { ApiError } from "../../../src/core/openai/errors.ts";
import type { Part } from "../../../src/core/openai/parts.ts";
import { ProviderError } from "../../../src/core/providers/provider-error.ts";
import { attempt, type RequestContext } from "../../../src/core/routing/attempt.ts";
import {
  CompletionFailed,
  completeWithFallback,
  type RequestProgress,
} from "../../../src/core/routing/fallback.ts";
import {
  chatOf,
  lab,
  refuse,
  reply,
  silence,
  turn,
  type Answer,
  type Lab,
} from "../../support/routing.ts";
import { piecesOf } from "../../support/pieces.ts";

interface Run {
  readonly result: Promise<RequestProgress>;
  readonly cancel: Cancel;
  readonly delivered: Part[];
  /** The operator's log. */
  readonly events: string[];
}

function start(
  { models, clock }: Lab,
  over: object = {},
  large = false,
  hooks: Partial<RequestContext> = {},
): Run {
  const cancel = new Cancel();
  const delivered: Part[] = [];
  const events: string[] = [];
  const deliver = (parts: readonly Part[]) => {
    delivered.push(...parts);
    return undefined;
  };
  const result = completeWithFallback(chatOf(over), models, deliver, {
    config: {} as never, // only extensions look into it
    cancel,
    endsAt: clock.monotonic() + 900_000,
    account: "acme",
    large,
    retain: () => undefined,
    clock,
    report: (event) => events.push(event),
    observers: [],
    inFlight: () => 1,
    attempt,
    ...hooks,
  });
  result.catch(() => undefined);
  return { result, cancel, delivered, events };
}

/** Waits until a timer runs, and moves the clock on. */
async function pass({ clock }: Lab, ms: number): Promise<void> {
  for (let i = 0; i < 5; i += 1) await turn();
  clock.advance(ms);
}

const outcomes = ({ attempts }: RequestProgress) =>
  attempts.map(({ model, outcome }) => `${model} ${outcome}`);

async function failure(run: Run): Promise<CompletionFailed> {
  const error: unknown = await run.result.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CompletionFailed);
  return error;
}

function codeOf(error: unknown): string {
  assert.ok(error instanceof ApiError || error instanceof ProviderError);
  return error.code;
}

const TOO_LONG = refuse(400, "context_length_exceeded");

describe("completeWithFallback", () => {
  it("gives other work a turn before each step of a large request", async () => {
    const world = lab({ a: [reply("Hi.")] });
    const run = start(world, {}, true);
    await turn();
    assert.deepEqual(world.asked, []);
    await run.result;
    assert.deepEqual(world.asked, ["a"]);
  });

  it("does not send a large request whose client left between its steps", async () => {
    const world = lab({ a: [] });
    const run = start(world, {}, true);
    run.cancel.abort(new ClientGone());
    assert.ok((await failure(run)).error instanceof ClientGone);
    assert.deepEqual(world.asked, []);
  });

  it("waits between half and all of backoff_ms, and twice as long the next time", async () => {
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

  it("waits as long as Retry-After says, if that is at most max_wait_ms", async () => {
    const world = lab({
      a: [refuse(429, "rate_limit_exceeded", { "retry-after": "2" }), reply("Hi.")],
    });
    const run = start(world);
    await pass(world, 1_999);
    await pass(world, 0);
    assert.equal(world.asked.length, 1);
    await pass(world, 1);
    await run.result;
    assert.deepEqual(world.asked, ["a", "a"]);
  });

  it("goes on to the candidates that are chosen after a failure", async () => {
    const world = lab({ a: [TOO_LONG], b: [], c: [reply("Hi.")] });
    const failures: string[] = [];
    await start(world, {}, false, {
      remaining(models, failed) {
        failures.push(...failed.map(({ model, error }) => `${model.name} ${error.code}`));
        return models.filter(({ name }) => name === "c");
      },
    }).result;
    assert.deepEqual(world.asked, ["a", "c"]);
    assert.deepEqual(failures, ["a context_length_exceeded"]);
  });

  it("throws context_length_exceeded with the largest size where no model is larger", async () => {
    const world = lab({ a: [TOO_LONG] }, {}, { a: { context_tokens: 1_000 } });
    const { error } = await failure(start(world));
    assert.equal(codeOf(error), "context_length_exceeded");
    assert.match((error as ApiError).message, /1000 tokens/);
    assert.equal(world.models[0]!.status().failures, 0, "the breaker does not count it");
  });
});

describe("completeWithFallback, cancelled", () => {
  it("ends the wait before a retry", async () => {
    const world = lab({ a: [refuse(500)] });
    const run = start(world);
    await pass(world, 0);
    assert.equal(world.clock.pending(), 1);
    run.cancel.abort(new ClientGone("left"));
    const { error, progress } = await failure(run);
    assert.ok(error instanceof ClientGone);
    assert.deepEqual(outcomes(progress), ["a upstream_error"]);
    assert.equal(world.clock.pending(), 0);
  });

  it("does not blame a provider that had a part of the request's time", async () => {
    const world = lab({ a: [refuse(503, null, { "retry-after": "9" })], b: [silence] });
    const run = start(world);
    await pass(world, 0);
    run.cancel.abort(new ProviderError("upstream_timeout", "total_ms"));
    await failure(run);
    assert.equal(world.models[1]!.status().failures, 0);
  });

  it("leaves no timer behind", async () => {
    const world = lab({ a: [refuse(500), reply("Hi.")] });
    const run = start(world);
    await pass(world, 250);
    await run.result;
    assert.equal(world.clock.pending(), 0);
  });
});

describe("a whole reply", () => {
  /** This answer; `ended` is called in the turn after the end of its body. */
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

  it("is not delivered if its client leaves while it is parsed, in turns of its own", async () => {
    let run: Run | undefined;
    const large = reply("x".repeat(512 * 1024));
    run = start(lab({ a: [ending(large, () => run!.cancel.abort(new ClientGone()))] }));
    const { error } = await failure(run);
    assert.ok(error instanceof ClientGone);
    assert.deepEqual(run.delivered, []);
  });

  it("has no deadline while it waits for its turn to be parsed", async () => {
    const large = reply("x".repeat(512 * 1024));
    const world: Lab = lab({ a: [ending(large, () => world.clock.advance(600_000))] });
    const { finishReason } = await start(world).result;
    assert.deepEqual([finishReason, world.clock.monotonic()], ["stop", 600_000]);
  });

  it("is not delivered if there is no room for its values", async () => {
    const sizes: number[] = [];
    const retain = (bytes: number) => {
      sizes.push(bytes);
      if (sizes.length > 1) run.cancel.abort(new ApiError("server_overloaded", "No room."));
    };
    const large = reply("x".repeat(512 * 1024));
    const run: Run = start(lab({ a: [large] }), {}, false, { retain });
    const { error } = await failure(run);
    assert.equal(codeOf(error), "server_overloaded");
    assert.deepEqual([sizes.length, run.delivered], [2, []]);
  });

  it("of usual length keeps its bytes only", async () => {
    const sizes: number[] = [];
    const retain = (bytes: number) => sizes.push(bytes);
    await start(lab({ a: [reply("x".repeat(1_000))] }), {}, false, { retain }).result;
    assert.equal(sizes.length, 1);
    assert.ok(sizes[0]! < 1_200);
  });
});
