// The circuit breaker, transition by transition.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { checkConfig } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { configFor, startGateway, user } from "../../../support/gateway.ts";
import { completion, startProvider, status } from "../../../support/provider.ts";
import { breakersBy } from "../../../support/routing.ts";

const SETTINGS = { failures: 3, cooldown_ms: 10_000 };
const ERROR = new ProviderError("upstream_error", "broken");

function setUp() {
  const clock = createFakeClock();
  const breaker = breakersBy(clock)("m");
  const enter = () => breaker.enter(SETTINGS);
  const status = () => breaker.status(SETTINGS);
  /** Opens it with as many failures as it takes. */
  const open = () => {
    for (let i = 0; i < SETTINGS.failures; i += 1) enter()!.failed(ERROR);
  };
  return { clock, enter, status, open };
}

describe("a closed breaker", () => {
  it("lets every attempt through, and waits for nothing", () => {
    const { enter, status } = setUp();
    assert.ok(enter());
    assert.ok(enter());
    const { state, failures, retryMs, lastFault } = status();
    assert.deepEqual([state, failures, retryMs, lastFault], ["closed", 0, 0, null]);
  });

  it("opens after so many failures in a row, and not before", () => {
    const { enter, status } = setUp();
    enter()!.failed(ERROR);
    enter()!.failed(ERROR);
    assert.equal(status().state, "closed");
    enter()!.failed(ERROR);
    assert.equal(status().state, "open");
    assert.equal(status().lastFault, "upstream_error: broken");
    assert.equal(status().retryMs, SETTINGS.cooldown_ms);
  });

  it("counts anew after a complete reply", () => {
    const { enter, status } = setUp();
    enter()!.failed(ERROR);
    enter()!.failed(ERROR);
    enter()!.completed();
    assert.equal(status().failures, 0);
    enter()!.failed(ERROR);
    assert.equal(status().state, "closed");
  });

  it("keeps its count when a reply only begins", () => {
    const { enter, status } = setUp();
    enter()!.failed(ERROR);
    enter()!.began();
    assert.equal(status().failures, 1);
  });

  it("opens at once when the provider refuses the key", () => {
    const { enter, status } = setUp();
    enter()!.failed(new ProviderError("model_unavailable", "refused", { operator: "key" }));
    assert.equal(status().state, "open");
  });

  it("ignores an attempt that says nothing of the provider, but for its answer", () => {
    const { enter, status } = setUp();
    const answer = { status: 400, path: "/v1/chat", message: "bad request" };
    enter()!.dropped(answer);
    assert.equal(status().failures, 0);
    assert.equal(status().lastAnswer, answer);
    enter()!.dropped();
    assert.equal(status().lastAnswer, answer);
  });
});

describe("an open breaker", () => {
  it("lets nothing through until its cooldown is over", () => {
    const { clock, enter, open } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms - 1);
    assert.equal(enter(), undefined);
    clock.advance(1);
    assert.ok(enter());
  });

  it("lets one probe through at a time, and tells others to come back soon", () => {
    const { clock, enter, status, open } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms);
    const probe = enter()!;
    assert.equal(enter(), undefined);
    assert.equal(status().state, "probing");
    assert.equal(status().retryMs, 1_000);
    probe.dropped();
    assert.ok(enter(), "a probe without a result makes room for the next");
  });

  it("closes when a probe's reply begins, and opens at a failure before its end", () => {
    const { clock, enter, status, open } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms);
    const probe = enter()!;
    probe.began();
    assert.equal(status().state, "closed");
    probe.failed(ERROR);
    assert.equal(status().state, "open");
  });

  it("forgets its failures when a probe's reply is complete", () => {
    const { clock, enter, status, open } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms);
    enter()!.completed();
    assert.equal(status().state, "closed");
    assert.equal(status().failures, 0);
  });

  it("opens for another cooldown when a probe fails", () => {
    const { clock, enter, status, open } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms);
    enter()!.failed(ERROR);
    assert.equal(status().state, "open");
    assert.equal(status().retryMs, SETTINGS.cooldown_ms);
  });

  it("is not closed by an attempt from before it opened", () => {
    const { enter, status, open } = setUp();
    const early = enter()!;
    open();
    early.completed();
    assert.equal(status().state, "open");
    early.failed(new ProviderError("upstream_timeout", "late"));
    assert.equal(status().failures, SETTINGS.failures);
    assert.equal(status().lastFault, "upstream_timeout: late", "the operator sees it all the same");
  });
});

describe("a model whose provider says when it may be asked again", () => {
  const overloaded = (retryAfterMs: number) =>
    new ProviderError("model_overloaded", "busy", { retryAfterMs });

  it("rests until then for every request, which is no failure", () => {
    const { clock, enter, status } = setUp();
    const [first, second] = [enter()!, enter()!];
    for (const pass of [first, second]) pass.failed(overloaded(5_000));
    enter();
    assert.equal(enter(), undefined);
    const { state, failures, retryMs } = status();
    assert.deepEqual([state, failures, retryMs], ["closed", 0, 5_000]);
    clock.advance(4_999);
    assert.equal(enter(), undefined);
    clock.advance(1);
    assert.ok(enter());
    assert.equal(status().retryMs, 0);
  });

  it("rests for an hour at most", () => {
    const { clock, enter } = setUp();
    enter()!.failed(overloaded(1e12));
    clock.advance(3_599_999);
    assert.equal(enter(), undefined);
    clock.advance(1);
    assert.ok(enter());
  });

  it("counts as failing if it does not say when", () => {
    const { enter, status } = setUp();
    enter()!.failed(new ProviderError("model_overloaded", "busy"));
    assert.equal(status().failures, 1);
  });

  it("stays open if it was probed, and is probed again after the rest", () => {
    const { clock, enter, open, status } = setUp();
    open();
    clock.advance(SETTINGS.cooldown_ms);
    enter()!.failed(overloaded(3_000));
    assert.deepEqual([status().state, status().retryMs, enter()], ["open", 3_000, undefined]);
    clock.advance(3_000);
    assert.ok(enter());
    assert.equal(enter(), undefined, "one probe at a time");
  });
});

describe("the breaker of a model whose provider has another key or address after a reload", () => {
  it("does not rest until the time that was stated of the one before", async (t) => {
    const provider = await startProvider(t, (asked) => {
      const isOld = asked.headers.authorization === "Bearer sk-old";
      const headers = { "content-type": "application/json" };
      const pause = isOld ? { "retry-after": "3000" } : {};
      status(isOld ? 429 : 200, completion({ content: "Hi." }), { ...headers, ...pause })(asked);
    });
    const config = (key: string) =>
      configFor(provider.url, ["m"], { providers: { lab: { api_key: key } } });
    const { chat, gateway } = await startGateway(t, config("sk-old"));
    const ask = async () => (await chat({ model: "m", messages: user("hi") })).status;
    assert.deepEqual([await ask(), await ask()], [503, 503]);
    gateway.reload(checkConfig(config("sk-old"), {}));
    assert.equal(await ask(), 503);
    assert.equal(provider.asked.length, 1, "the pause is kept");
    gateway.reload(checkConfig(config("sk-new"), {}));
    assert.equal(await ask(), 200);
  });
});
