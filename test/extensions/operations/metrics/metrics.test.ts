// GET /metrics: its families, what is so at the moment, and what its labels hold. traffic.test.ts has
// its counts.

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, it } from "node:test";
import { FAMILIES } from "../../../../src/extensions/operations/metrics/families.ts";
import { priced, settled } from "../../../support/books.ts";
import { demo, KEY, startGateway, user } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import { chunk, speak, stream } from "../../../support/provider.ts";
import { waitFor } from "../../../support/wait.ts";
import { identity, scrape } from "./read-metrics.ts";

const CHAT = "/v1/chat/completions";

describe("metrics", () => {
  it("before any traffic: every family with its help and kind, and what is so at the moment", async (t) => {
    const gw = await startGateway(t, demo());
    const { families, read } = await scrape(gw);
    const typesOf = (all: Iterable<[string, { readonly type: string }]>) =>
      Object.fromEntries([...all].map(([name, { type }]) => [name, type]));
    assert.deepEqual(typesOf(families), typesOf(Object.entries(FAMILIES)));
    for (const [name, value] of [
      ["in_flight_requests", 0],
      ["limits_store_up", 1],
      ["spend_log_writable", 1],
      ["keys_readable", 1],
      ["workers", 1],
    ] as const)
      assert.deepEqual(read(`chat_gateway_${name}`), { "": value });
    const states = read("chat_gateway_breaker_state", "model");
    assert.deepEqual(states, { "demo-chat": 0, "demo-reasoner": 0 });
    const delays = read("chat_gateway_event_loop_delay_seconds", "quantile");
    assert.deepEqual(Object.keys(delays).sort(), ["0.5", "0.99", "1"]);
    // Those who look are not counted.
    for (const [name, { type, samples }] of (await scrape(gw)).families)
      if (type !== "gauge" && type !== "summary") assert.deepEqual(samples, [], name);
  });

  it("a client that leaves is counted as 499 and cancelled, and is no longer in flight", async (t) => {
    const { dir, gw } = await priced(t, { m: stream([chunk({ content: "Once" })], "open") });
    const leaver = new AbortController();
    await fetch(`${gw.url}${CHAT}`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", stream: true, messages: user("hi") }),
      signal: leaver.signal,
    });
    const inFlight = async () => (await scrape(gw)).read("chat_gateway_in_flight_requests");
    assert.deepEqual(await inFlight(), { "": 1 });
    leaver.abort();
    await waitFor(() => gw.access.length === 1, "its line in the access log");
    assert.deepEqual(await inFlight(), { "": 0 });
    await settled(dir);
    const { read } = await scrape(gw);
    assert.deepEqual(read("chat_gateway_requests_total", "status", "model"), { "499 | m": 1 });
    assert.deepEqual(read("chat_gateway_attempts_total", "outcome"), { cancelled: 1 });
  });

  it("names of models with quotes, backslashes, line ends and more are what they are", async (t) => {
    const names = ['q"uote', "back\\slash", "new\nline", "\\n", "a,b={}", "__proto__x"];
    names.push("日本語 \u2028", "tab\there", "car\rriage", "bell\u0007");
    const { gw, ask } = await priced(
      t,
      Object.fromEntries(names.map((name) => [name, speak("Fine.")])),
    );
    for (const model of names) await ask({ model });
    await waitFor(() => gw.access.length === names.length, "the access log");
    const { read } = await scrape(gw);
    for (const [family, label] of [
      ["chat_gateway_requests_total", "model"],
      ["chat_gateway_attempts_total", "model"],
      ["gen_ai_server_request_duration_seconds_count", "gen_ai_request_model"],
      ["chat_gateway_breaker_state", "model"],
      ["chat_gateway_cost_total", "model"],
    ] as const)
      assert.deepEqual(Object.keys(read(family, label)), names, family);
  });

  const ROUNDS = LONG ? 1_000 : 40;
  it(`${ROUNDS} unknown paths, models and keys make no label: only accounts are named, and what is told stays bounded`, async (t) => {
    const { gw, ask } = await priced(t, { m: speak("Fine.") });
    const round = async (mark: string) => {
      const headers = { "x-request-id": `canary-id-${mark}` };
      const get = await fetch(`${gw.url}/canary-path-${mark}?canary-query`, { headers });
      await get.arrayBuffer();
      const answers = await Promise.all([
        ask({ model: `canary-model-${mark}` }),
        ask({}, { authorization: `Bearer canary-key-${mark}` }),
        ask({ user: `canary-user-${mark}` }),
      ]);
      const statuses = [get, ...answers].map((answer) => answer.status);
      assert.deepEqual(statuses, [404, 404, 401, 200]);
    };
    const shape = async () => (await scrape(gw)).samples.map(identity).sort();
    await round("first");
    for (const path of ["/__proto__", "/constructor", "/V1/models"])
      await (await fetch(gw.url + path)).arrayBuffer();
    await waitFor(() => gw.access.length === 7, "the first lines of the access log");
    const before = await shape();
    for (let at = 0; at < ROUNDS; at += 8)
      await Promise.all(Array.from({ length: 8 }, () => round(String(Math.random()))));
    await waitFor(() => gw.access.length === 7 + 4 * ROUNDS, "the access log of all");
    assert.deepEqual(await shape(), before);
    const { text, read } = await scrape(gw);
    const keyId = String(gw.access.find((line) => typeof line["key_id"] === "string")!["key_id"]);
    for (const word of ["canary", KEY, keyId, "key_", "__proto__", "constructor"])
      assert.ok(!text.includes(word), word);
    const requests = read("chat_gateway_requests_total", "path", "status", "model");
    assert.equal(requests["other | 404 | "], ROUNDS + 4);
  });

  it("the event loop's delay is told in seconds, and is that since it was last looked at", async (t) => {
    const gw = await startGateway(t, demo());
    const delay = async () =>
      (await scrape(gw)).read("chat_gateway_event_loop_delay_seconds", "quantile");
    const beat = monitorEventLoopDelay({ resolution: 20 });
    beat.enable();
    t.after(() => beat.disable());
    let late = await delay();
    // The gateway may have begun anew just before, when it took figures for its history.
    for (let tries = 0; tries < 5 && !(late["1"]! >= 0.2); tries += 1) {
      // The measuring begins with the next look at the clock: this one, which begins later, has
      // had two.
      beat.reset();
      await waitFor(() => beat.count >= 2, "two looks at the clock");
      for (const end = performance.now() + 300; performance.now() < end; );
      await waitFor(() => beat.max > 200e6, "the look at the clock that was late");
      late = await delay();
    }
    assert.ok(late["1"]! >= 0.2 && late["1"]! < 60, JSON.stringify(late));
    // Also where hardly a moment has passed since the last look.
    const { "0.5": median, "0.99": most, "1": all } = await delay();
    assert.ok(median! >= 0 && most! >= median! && all! >= most!);
  });
});
