// The circuit breaker, transition by transition.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import { certificate } from "../../../support/certificate.ts";
import { checkConfig } from "../../../support/config.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { merge, startWith, user } from "../../../support/gateway.ts";
import { speak, status, type Behaviour } from "../../../support/provider.ts";
import { breakersBy } from "../../../support/routing.ts";

const SETTINGS = { failures: 3, cooldown_ms: 10_000 };
const ERROR = new ProviderError("upstream_error", "broken");

const KEY_REFUSED = new ProviderError("model_unavailable", "refused", { operator: "key" });
const overloaded = (retryAfterMs?: number) =>
  new ProviderError("model_overloaded", "busy", retryAfterMs === undefined ? {} : { retryAfterMs });

function setUp() {
  const clock = createFakeClock();
  const breaker = breakersBy(clock)("m");
  const enter = () => breaker.enter(SETTINGS);
  const status = () => breaker.status(SETTINGS);
  return { clock, enter, status };
}

type Breaker = ReturnType<typeof setUp>;
const fail = ({ enter }: Breaker, error = ERROR): void => enter()!.failed(error);
const wait = ({ clock }: Breaker, ms = SETTINGS.cooldown_ms): void => clock.advance(ms);
const open = (breaker: Breaker): void => {
  for (let i = 0; i < SETTINGS.failures; i += 1) fail(breaker);
};

describe("a breaker", () => {
  type Step = (breaker: Breaker) => void;
  const fails: Step = (b) => fail(b);
  const begins: Step = ({ enter }) => enter()!.began();
  const completes: Step = ({ enter }) => enter()!.completed();
  const refuses: Step = (b) => fail(b, KEY_REFUSED);
  const overloads =
    (retryAfterMs?: number): Step =>
    (b) =>
      fail(b, overloaded(retryAfterMs));
  const bothOverload: Step = ({ enter }) => {
    for (const pass of [enter()!, enter()!]) pass.failed(overloaded(5_000));
  };
  /** Opens it, and waits for the end of the cooldown. */
  const half: Step = (b) => {
    open(b);
    wait(b);
  };
  const breaks: Step = ({ enter }) => {
    const pass = enter()!;
    pass.began();
    pass.failed(ERROR);
  };
  const { cooldown_ms } = SETTINGS;
  /** After the steps: its state, its failures in a row, and the ms until the next try. */
  const ROWS: readonly [name: string, steps: Step[], expected: [string, number, number]][] = [
    ["is closed at first", [], ["closed", 0, 0]],
    ["stays closed below the number of failures in a row", [fails, fails], ["closed", 2, 0]],
    ["opens at that number of failures in a row", [open], ["open", 3, cooldown_ms]],
    ["counts from zero after a complete reply", [fails, fails, completes, fails], ["closed", 1, 0]],
    ["keeps its count when a reply only begins", [fails, begins], ["closed", 1, 0]],
    ["opens at once when the provider rejects the key", [refuses], ["open", 1, cooldown_ms]],
    ["reports a short wait during a probe", [half, ({ enter }) => enter()], ["probing", 3, 1_000]],
    ["closes when a probe's reply begins", [half, begins], ["closed", 2, 0]],
    ["opens when a probe's reply breaks off", [half, breaks], ["open", 3, cooldown_ms]],
    ["forgets its failures when a probe's is complete", [half, completes], ["closed", 0, 0]],
    ["opens for another cooldown when a probe fails", [half, fails], ["open", 4, cooldown_ms]],
    ["counts an overload that does not say when it is over", [overloads()], ["closed", 1, 0]],
    ["counts an overload that says that it is over", [overloads(0)], ["closed", 1, 0]],
    [
      "rests for all requests after an overload with a wait, which is no failure",
      [bothOverload],
      ["closed", 0, 5_000],
    ],
    ["rests for an hour at most", [overloads(1e12)], ["closed", 0, 3_600_000]],
    ["stays open if a probe meets such an overload", [half, overloads(3_000)], ["open", 3, 3_000]],
  ];
  for (const [name, steps, expected] of ROWS)
    it(name, () => {
      const breaker = setUp();
      for (const step of steps) step(breaker);
      const { state, failures, retryMs } = breaker.status();
      assert.deepEqual([state, failures, retryMs], expected);
    });

  it("lets nothing through until its cooldown or rest is over, and then one probe at a time", () => {
    const breaker = setUp();
    const { enter } = breaker;
    open(breaker);
    wait(breaker, cooldown_ms - 1);
    assert.equal(enter(), undefined);
    wait(breaker, 1);
    const probe = enter()!;
    assert.equal(enter(), undefined);
    probe.dropped();
    fail(breaker, overloaded(3_000));
    wait(breaker, 2_999);
    assert.equal(enter(), undefined);
    wait(breaker, 1);
    assert.ok(enter(), "a probe without a result makes room for the next");
    assert.equal(enter(), undefined);
  });

  it("learns only that it answered from an attempt that says nothing about the provider", () => {
    const { enter, status } = setUp();
    const answer = { status: 400, path: "/v1/chat", message: "bad request" };
    enter()!.dropped(answer);
    const { failures, lastFault } = status();
    assert.deepEqual([failures, lastFault], [0, null]);
    enter()!.dropped();
    assert.equal(status().lastAnswer, answer);
  });

  it("is not closed by an attempt from before it opened", () => {
    const breaker = setUp();
    const { enter, status } = breaker;
    const early = enter()!;
    open(breaker);
    early.completed();
    assert.equal(status().state, "open");
    early.failed(new ProviderError("upstream_timeout", "late"));
    assert.equal(status().failures, SETTINGS.failures);
    assert.equal(status().lastFault, "upstream_timeout: late", "the operator sees it all the same");
  });
});

describe("the breaker of a model whose provider has other settings after a reload", () => {
  it("does not keep a rest that was stated for the earlier one", async (t) => {
    const limited = status(429, {}, { "content-type": "application/json", "retry-after": "3000" });
    const m: Behaviour = (asked) =>
      (asked.headers.authorization === "Bearer sk-old" ? limited : speak("Hi."))(asked);
    const lab = (api_key: string, more: object = {}) => ({ lab: { api_key, ...more } });
    const over = { providers: lab("sk-old") };
    const { chat, gateway, provider, config } = await startWith(t, { m }, over);
    const reload = (providers: object, models: object = {}) =>
      gateway.reload(checkConfig(merge(config, { providers, models }), {}));
    const ask = async () => (await chat({ model: "m", messages: user("hi") })).status;
    assert.deepEqual([await ask(), await ask()], [503, 503]);
    reload(lab("sk-old"));
    assert.equal(await ask(), 503);
    assert.equal(provider.asked.length, 1, "the pause is kept");
    reload(lab("sk-new"));
    assert.equal(await ask(), 200);
    reload(lab("sk-old"));
    assert.equal(await ask(), 503);
    reload(lab("sk-old", { timeouts: { idle_ms: 9_000 } }));
    await ask();
    assert.equal(provider.asked.length, 3, "the change may be the fix");
    reload(lab("sk-old"), { m: { path: "/v2/chat" } });
    await ask();
    assert.equal(provider.asked.length, 4);
  });

  it("is the same one after a rejected reload", async (t) => {
    const { chat, gateway, provider, config } = await startWith(t, { m: status(401) });
    const ask = () => chat({ model: "m", messages: user("hi") });
    await ask();
    const far = { dialect: "openai", base_url: "https://far.example" };
    const reload = (files: object) => {
      const more = {
        providers: { far: { ...far, ...files } },
        models: { far: { provider: "far" } },
      };
      gateway.reload(checkConfig(merge(config, more), {}));
    };
    const [{ cert_file }, { key_file }] = [certificate(), certificate()];
    assert.throws(() => reload({ cert_file, key_file }));
    reload({});
    await ask();
    assert.equal(provider.asked.length, 1);
  });
});
