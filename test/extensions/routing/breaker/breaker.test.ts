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

type Steps = ReturnType<typeof setUp>;
const fail = ({ enter }: Steps, error = ERROR): void => enter()!.failed(error);
const wait = ({ clock }: Steps, ms = SETTINGS.cooldown_ms): void => clock.advance(ms);
/** Opens it with as many failures as it takes. */
const open = (breaker: Steps): void => {
  for (let i = 0; i < SETTINGS.failures; i += 1) fail(breaker);
};
/** Opens it, and lets the cooldown pass. */
const half = (breaker: Steps): void => {
  open(breaker);
  wait(breaker);
};

describe("a breaker", () => {
  type Row = [name: string, steps: (breaker: Steps) => void, expected: [string, number, number]];
  const { cooldown_ms } = SETTINGS;
  /** After each: its state, its failures in a row, and when to ask again. */
  const ROWS: readonly Row[] = [
    ["is closed at first", () => undefined, ["closed", 0, 0]],
    ["is closed before so many failures in a row", (b) => [fail(b), fail(b)], ["closed", 2, 0]],
    ["opens after so many failures in a row", open, ["open", 3, cooldown_ms]],
    [
      "counts anew after a complete reply",
      (b) => [fail(b), fail(b), b.enter()!.completed(), fail(b)],
      ["closed", 1, 0],
    ],
    [
      "keeps its count when a reply only begins",
      (b) => [fail(b), b.enter()!.began()],
      ["closed", 1, 0],
    ],
    [
      "opens at once when the provider refuses the key",
      (b) => fail(b, KEY_REFUSED),
      ["open", 1, cooldown_ms],
    ],
    [
      "tells others to come back soon during a probe",
      (b) => [half(b), b.enter()],
      ["probing", 3, 1_000],
    ],
    ["closes when a probe's reply begins", (b) => [half(b), b.enter()!.began()], ["closed", 2, 0]],
    [
      "forgets its failures when a probe's reply is complete",
      (b) => [half(b), b.enter()!.completed()],
      ["closed", 0, 0],
    ],
    [
      "opens for another cooldown when a probe fails",
      (b) => [half(b), fail(b)],
      ["open", 4, cooldown_ms],
    ],
    [
      "counts an overload that does not say when it is over, or says that it is over",
      (b) => [fail(b, overloaded()), fail(b, overloaded(0))],
      ["closed", 2, 0],
    ],
    [
      "rests after an overload that says when: for every request, which is no failure",
      (b) => [b.enter()!, b.enter()!].map((pass) => pass.failed(overloaded(5_000))),
      ["closed", 0, 5_000],
    ],
    [
      "stays open where a probe meets such an overload",
      (b) => [half(b), fail(b, overloaded(3_000))],
      ["open", 3, 3_000],
    ],
  ];
  for (const [name, steps, expected] of ROWS)
    it(name, () => {
      const breaker = setUp();
      steps(breaker);
      const { state, failures, retryMs } = breaker.status();
      assert.deepEqual([state, failures, retryMs], expected);
    });

  it("opens again at a failure between a probe's beginning and its end", () => {
    const breaker = setUp();
    half(breaker);
    const probe = breaker.enter()!;
    probe.began();
    probe.failed(ERROR);
    assert.equal(breaker.status().state, "open");
    assert.equal(breaker.status().lastFault, "upstream_error: broken");
  });

  it("lets nothing through until its cooldown or its rest is over, and then one probe at a time", () => {
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

  it("rests for an hour at most", () => {
    const breaker = setUp();
    fail(breaker, overloaded(1e12));
    wait(breaker, 3_599_999);
    assert.equal(breaker.enter(), undefined);
    wait(breaker, 1);
    assert.ok(breaker.enter());
  });

  it("learns nothing but the answer of an attempt that says nothing of the provider", () => {
    const { enter, status } = setUp();
    const answer = { status: 400, path: "/v1/chat", message: "bad request" };
    enter()!.dropped(answer);
    assert.equal(status().failures, 0);
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
  it("does not rest until the time that was stated of the one before", async (t) => {
    const limited = status(429, {}, { "content-type": "application/json", "retry-after": "3000" });
    const m: Behaviour = (asked) =>
      (asked.headers.authorization === "Bearer sk-old" ? limited : speak("Hi."))(asked);
    const lab = (api_key: string, more: object = {}) => ({ lab: { api_key, ...more } });
    const { chat, gateway, provider, config } = await startWith(
      t,
      { m },
      { providers: lab("sk-old") },
    );
    const reload = (providers: object) =>
      gateway.reload(checkConfig(merge(config, { providers }), {}));
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
    assert.equal(provider.asked.length, 3, "it may be what the operator has mended");
  });

  it("is the same one after a reload that was refused", async (t) => {
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
