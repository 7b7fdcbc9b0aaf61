// Attempts at several models, breakers and readiness, as clients and operators see them.
// faults.test.ts tests how each provider fault is reported.

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { assemble, json, readStream, user } from "../../support/gateway.ts";
import {
  held,
  inTurn,
  silent,
  speak,
  startProvider,
  status,
  type Behaviour,
} from "../../support/provider.ts";
import { timersOnCall } from "../../support/unhurried-clock.ts";
import { within } from "../../support/wait.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { bench, failure, outcome, refusing } from "./two-providers.ts";

/** What a client gets if the providers of a and b behave like this. */
async function bothFail(t: TestContext, [a, b]: [Behaviour, Behaviour], model = "x", over = {}) {
  const second = await startProvider(t, { b });
  const { gateway } = await bench(t, a, {
    ...over,
    providers: { other: { base_url: second.url } },
  });
  const { got, retryAfter } = await outcome(gateway, model);
  return `${got}, ${retryAfter}`;
}

describe("attempts", () => {
  it("different faults of different models: model_unavailable, with the earliest Retry-After if all are known", async (t) => {
    const nine = refusing(429, "9");
    const first = await bothFail(t, [status(500), nine]);
    assert.equal(first, "model_unavailable, null", "the first may be retried at once");
    const told = await bothFail(t, [refusing(503, "9"), status(401)]);
    assert.equal(told, "model_unavailable, 9");
  });

  it("a larger model that is temporarily unavailable makes an error of the server, not of the client", async (t) => {
    const tooLong = status(400, failure("maximum context length"));
    for (const model of ["b", "x"])
      assert.equal(await bothFail(t, [tooLong, status(401)], model), "model_unavailable, 15");
  });

  it("Retry-After is the provider's own, which opens no breaker; of several models the earliest", async (t) => {
    const rules = { breaker: { failures: 1, cooldown_ms: 30_000 }, retry: { max_retries: 0 } };
    const busy: [Behaviour, Behaviour] = [refusing(429, "2"), refusing(429, "50")];
    for (const model of ["a", "x"])
      assert.equal(await bothFail(t, busy, model, rules), "model_overloaded, 2");
  });

  it("no retry waits for a breaker that has just opened, nor beyond the request's total time", async (t) => {
    const rules = { retry: { max_wait_ms: 5_000 } };
    for (const [busyProvider, more] of [
      [status(503), { breaker: { failures: 1 } }],
      [refusing(429, "3"), { timeouts: { total_ms: 2_000 } }],
    ] as const) {
      // The clock stands still, so a wait would never end.
      const over = { ...rules, ...more };
      const { gateway, first } = await bench(t, busyProvider, over, createFakeClock());
      assert.equal((await outcome(gateway, "x")).got, "b");
      assert.equal(first.asked.length, 1);
    }
  });

  it("a provider that is silent for the request's whole time counts as failing, and no other is tried", async (t) => {
    const total_ms = 123_456;
    const time = timersOnCall(total_ms);
    const rules = { timeouts: { total_ms }, breaker: { failures: 2 } };
    const { gateway, first, second } = await bench(t, silent, rules, time);
    for (const [nth, model] of ["a", "x"].entries()) {
      const asking = outcome(gateway, model);
      await first.nth(nth);
      time.fire();
      assert.equal((await asking).got, "upstream_timeout");
    }
    assert.equal((await outcome(gateway, "a")).got, "model_unavailable");
    assert.deepEqual([first.asked.length, second.asked.length], [2, 0]);
    assert.deepEqual(
      gateway.diagnostics.map((line) => line["event"]),
      ["request_timed_out", "request_timed_out"],
    );
  });

  it("max_retries is obeyed, and a provider's own overrides it", async (t) => {
    const own = { providers: { lab: { retry: { max_retries: 2 } } } };
    for (const [over, tries] of [
      [{ retry: { max_retries: 3 } }, 4],
      [own, 3],
    ] as const) {
      const { gateway, first } = await bench(t, status(500), over);
      await outcome(gateway, "a");
      assert.equal(first.asked.length, tries);
    }
  });

  it("the operator gets a loud log line about a rejected key", async (t) => {
    const { gateway } = await bench(t, status(401));
    await outcome(gateway, "x");
    const line = gateway.diagnostics.find((each) => each["event"] === "attempt_failed")!;
    assert.deepEqual([line["level"], line["blame"], line["status"]], ["error", "operator", 401]);
  });

  for (const [model, expected] of [
    ["x", ["b", undefined]],
    ["a", [undefined, "upstream_error"]],
  ] as const)
    it(`comments precede the first delta; ${model === "x" ? "fallback stays invisible after them" : "a failure after them is in-band"}`, async (t) => {
      let fail = () => {};
      const failing: Behaviour = ({ res }) => {
        fail = () => res.destroy();
      };
      const { gateway, first } = await bench(t, failing, {
        server: { keep_alive_ms: 20 },
        retry: { max_retries: 0 },
      });
      // The stream begins with a comment.
      const response = await gateway.chat({ model, stream: true, messages: user("hi") });
      await first.nth(0);
      fail();
      const { chunks, comments, done, error } = await readStream(response);
      assert.ok(comments > 0);
      assert.equal(done, error === undefined);
      assert.deepEqual([chunks[0]?.model, error?.code], expected);
    });
});

const rules = { breaker: { failures: 3, cooldown_ms: 10_000 }, retry: { max_retries: 0 } };

it("if the client of a probe leaves, the next request is the probe", async (t) => {
  const clock = { now: 0 };
  const behaviour = inTurn(status(403), silent, speak("Fine."));
  const { gateway, first } = await bench(t, behaviour, rules, { monotonic: () => clock.now });
  await outcome(gateway, "a");
  clock.now += 10_000;
  const client = new AbortController();
  const request = gateway.chat(
    { model: "a", messages: user("hi") },
    { "x-request-id": "probe" },
    client.signal,
  );
  await first.nth(1);
  const { got, retryAfter } = await outcome(gateway, "a");
  assert.deepEqual([got, retryAfter], ["model_unavailable", "1"], "one probe at a time");
  client.abort();
  await request.catch(() => undefined);
  await gateway.accessOf("probe");
  assert.equal((await outcome(gateway, "a")).got, "ok");
});

describe("readyz and status", () => {
  const get = async (url: string) => {
    const response = await fetch(url);
    return { status: response.status, body: await json(response) };
  };

  it("ready while a model can serve; the status says which ones cannot, and why", async (t) => {
    const clock = { now: 0 };
    const second = await startProvider(t, { b: status(401) });
    const over = {
      breaker: { failures: 1, cooldown_ms: 10_000 },
      retry: { max_retries: 0 },
      providers: { other: { base_url: second.url } },
    };
    const { gateway } = await bench(t, status(500), over, { monotonic: () => clock.now });
    const ready = () => get(`${gateway.url}/readyz`);
    assert.deepEqual(await ready(), { status: 200, body: { status: "ready" } });
    await outcome(gateway, "x");
    assert.equal((await ready()).status, 200, "c is not known to fail");
    await outcome(gateway, "c");
    const notReady = await ready();
    assert.deepEqual([notReady.status, notReady.body.error.code], [503, "model_unavailable"]);
    assert.equal((await get(`${gateway.url}/healthz`)).status, 200);
    const { body } = await get(`${gateway.gateway.adminAddress()}/status`);
    assert.deepEqual(
      body.models.map(({ model, provider, breaker }: any) => [
        model,
        provider,
        breaker.state,
        breaker.retry_ms,
      ]),
      [
        ["a", "lab", "open", 10_000],
        ["b", "other", "open", 10_000],
        ["c", "other", "open", 10_000],
      ],
    );
    assert.match(
      body.models[1].breaker.last_fault,
      /model_unavailable: the provider answered with status 401/,
    );
    clock.now += 10_000;
    assert.equal((await ready()).status, 200, "a probe could be served");
    assert.ok(!JSON.stringify(body).includes("sk-"));
  });

  it("while draining, running requests continue; the public listener has no /status, the admin listener no chat", async (t) => {
    const { behaviour, finish } = held();
    const { gateway } = await bench(t, behaviour);
    const admin = gateway.gateway.adminAddress()!;
    assert.equal((await get(`${gateway.url}/status`)).status, 404);
    assert.equal((await get(`${admin}/v1/models`)).status, 404);
    const response = await gateway.chat({ model: "a", stream: true, messages: user("hi") });
    const closing = gateway.gateway.close(5_000);
    const { body } = await get(`${admin}/status`);
    assert.deepEqual([body.status, body.in_flight], ["draining", 1]);
    finish();
    const { chunks, done } = await readStream(response);
    assert.ok(done);
    assert.equal(assemble(chunks).message["content"], "Fine.");
    await within(closing, "the gateway to close");
  });
});
