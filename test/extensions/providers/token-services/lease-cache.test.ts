// When an expiring value is renewed, on a clock that the test moves.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  createLeaseCache,
  type Lease,
} from "../../../../src/extensions/providers/token-services/index.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";

/** Yields the values v1, v2, ..., each valid for `lifeMs`, unless it is set to fail. */
function source(lifeMs: number) {
  const clock = createFakeClock();
  const failures: unknown[] = [];
  const state = { obtained: 0, error: undefined as Error | undefined };
  const renewing = createLeaseCache(
    async (): Promise<Lease<string>> => {
      state.obtained += 1;
      if (state.error) throw state.error;
      return { value: `v${state.obtained}`, expiresAt: clock.now() + lifeMs };
    },
    clock,
    (error) => failures.push(error),
  );
  return { clock, failures, state, renewing };
}

describe("a value that expires", () => {
  it("is renewed in the background when a fifth of its life is left", async () => {
    const { clock, renewing, state } = source(60_000);
    await renewing.get();
    clock.advance(47_999);
    assert.equal(renewing.get(), "v1");
    assert.equal(state.obtained, 1);
    clock.advance(1);
    assert.equal(renewing.get(), "v1");
    assert.equal(state.obtained, 2);
    await Promise.resolve();
    await Promise.resolve();
    assert.equal(renewing.get(), "v2");
  });

  it("is renewed at least 150 ms early, so that one of three seconds works", async () => {
    const { clock, renewing, state } = source(3_000);
    await renewing.get();
    clock.advance(2_400);
    renewing.get();
    assert.equal(state.obtained, 2);
    const short = source(600);
    await short.renewing.get();
    clock.advance(449);
    short.clock.advance(449);
    assert.equal(short.renewing.get(), "v1");
    short.clock.advance(151);
    assert.equal(await short.renewing.get(), "v2");
  });

  it("is used while it lives if it cannot be renewed, which is retried once a second", async () => {
    const { clock, failures, renewing, state } = source(10_000);
    await renewing.get();
    state.error = new Error("down");
    clock.advance(8_000);
    for (let i = 0; i < 5; i += 1) {
      assert.equal(renewing.get(), "v1");
      await new Promise(setImmediate);
    }
    assert.deepEqual([state.obtained, failures.length], [2, 1]);
    clock.advance(1_000);
    assert.equal(renewing.get(), "v1");
    await new Promise(setImmediate);
    assert.deepEqual([state.obtained, failures.length], [3, 2]);
  });

  it("fails at once within a second of a failure, and is obtained again later", async () => {
    const { clock, renewing, state } = source(10_000);
    state.error = new Error("down");
    await assert.rejects(async () => await renewing.get(), /down/);
    await assert.rejects(async () => await renewing.get(), /down/);
    assert.equal(state.obtained, 1);
    state.error = undefined;
    clock.advance(1_000);
    assert.equal(await renewing.get(), "v2");
  });

  it("is renewed once for all callers that it failed", async () => {
    const { clock, renewing, state } = source(60_000);
    await renewing.get();
    assert.deepEqual(
      [renewing.refuse("v1"), renewing.refuse("v1")],
      [true, true],
      "the second finds that another renewal is under way",
    );
    assert.equal(await renewing.get(), "v2");
    assert.equal(renewing.refuse("v1"), true, "it has been renewed since");
    assert.equal(renewing.refuse("v2"), false, "a fresh one is refused too");
    assert.equal(state.obtained, 2);
    clock.advance(1_000);
    assert.equal(renewing.refuse("v2"), true);
  });
});
