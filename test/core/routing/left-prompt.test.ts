// What a client pays that leaves before anything came, by what its provider had at that moment.

import { attempt } from "../../../src/core/routing/attempt.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cancel, ClientGone } from "../../../src/core/http/cancel.ts";
import { CompletionFailed, completeWithFallback } from "../../../src/core/routing/fallback.ts";
import {
  breakOff,
  catalogOf,
  chatOf,
  refuse,
  settingsFor,
  turn,
  type Answer,
} from "../../support/routing.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const CHAT = chatOf({ model: "m", messages: [{ role: "user", content: "12345678" }] });
const PROMPT = ["estimated", 2, 2_000_000n];
const NOTHING = ["none", 0, 0n];

/** Never has anything to say. It gets the request only if `has`. */
const silent =
  (has: boolean): Answer =>
  ({ sent, cancel }) => {
    if (has) sent();
    return new Promise((_, reject) => cancel.onAbort(() => reject(cancel.reason as Error)));
  };

/** A head of this status, and a body that does not come. */
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

/** What is billed of these answers, during the last of which `reason` ends the request. */
async function billed(answers: readonly Answer[], reason: Error) {
  const clock = createFakeClock();
  let calls = 0;
  const price = { input_cache_miss: 1, output: 2 };
  const settings = settingsFor(
    { m: { price } },
    { retry: { max_retries: 5, backoff_ms: 1, max_wait_ms: 3_000 } },
  );
  const transport: Answer = (request) => answers[calls++]!(request);
  const model = catalogOf(settings, clock, transport).models.get("m")!;
  const cancel = new Cancel();
  const result = completeWithFallback(CHAT, [model], () => undefined, {
    config: {} as never, // only extensions look into it
    cancel,
    endsAt: 900_000,
    account: "acme",
    large: false,
    retain: () => undefined,
    clock,
    report: () => undefined,
    observers: [],
    inFlight: () => 1,
    attempt,
  }).catch((error: unknown) => error);
  for (let turns = 0; turns < 50 && calls < answers.length; turns += 1) {
    await turn();
    clock.advance(1);
  }
  assert.equal(calls, answers.length);
  for (let turns = 0; turns < 5; turns += 1) await turn();
  cancel.abort(reason);
  const failure = await result;
  assert.ok(failure instanceof CompletionFailed);
  const { reading, cost } = failure.progress;
  return [reading.source, reading.usage.prompt_tokens, cost];
}

describe("a client that leaves before anything came", () => {
  const gone = new ClientGone();
  const FAILED = breakOff("ECONNRESET");

  it("pays the prompt that a provider has, be it silent or at work", async () => {
    assert.deepEqual(await billed([silent(true)], gone), PROMPT);
    assert.deepEqual(await billed([headOnly(200)], gone), PROMPT);
  });

  it("pays nothing that no provider has", async () => {
    assert.deepEqual(await billed([silent(false)], gone), NOTHING);
  });

  it("pays nothing where the provider has refused", async () => {
    assert.deepEqual(await billed([headOnly(429)], gone), NOTHING);
  });

  it("pays nothing of attempts that failed, and the prompt of the one after", async () => {
    assert.deepEqual(await billed([refuse(500), silent(false)], gone), NOTHING);
    assert.deepEqual(await billed([FAILED, silent(true)], gone), PROMPT);
  });

  it("pays nothing in the pause after an attempt that failed", async () => {
    assert.deepEqual(await billed([refuse(500, null, { "retry-after": "2" })], gone), NOTHING);
  });

  it("that stays pays nothing for a request that fails", async () => {
    assert.deepEqual(await billed([silent(true)], new Error("the gateway closes")), NOTHING);
  });
});
