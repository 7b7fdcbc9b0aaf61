// GET /metrics: its families, current values, label values, and its counts after traffic of which
// every request is known.

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, it, type TestContext } from "node:test";
import { FAMILIES } from "../../../../src/extensions/operations/metrics/families.ts";
import { COUNTED, costOf, PRICE, priced, settled } from "../../../support/books.ts";
import { demo, KEY, startGateway, user } from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import {
  chunk,
  event,
  speak,
  startProvider,
  status,
  stream,
  usageChunk,
} from "../../../support/provider.ts";
import { waitFor, within } from "../../../support/wait.ts";
import { identity, scrape } from "./read-metrics.ts";

describe("metrics", () => {
  it("before any traffic: every family with help and type, and current values", async (t) => {
    const gw = await startGateway(t, demo());
    const { families, read } = await scrape(gw);
    const typesOf = (all: Iterable<[string, { readonly type: string }]>) =>
      Object.fromEntries([...all].map(([name, { type }]) => [name, type]));
    assert.deepEqual(typesOf(families), typesOf(Object.entries(FAMILIES)));
    assert.deepEqual(read("chat_gateway_in_flight_requests"), { "": 0 });
    for (const name of ["limits_store_up", "spend_log_writable", "keys_readable", "workers"])
      assert.deepEqual(read(`chat_gateway_${name}`), { "": 1 });
    const states = read("chat_gateway_breaker_state", "model");
    assert.deepEqual(states, { "demo-chat": 0, "demo-reasoner": 0 });
    const delays = read("chat_gateway_event_loop_delay_seconds", "quantile");
    assert.deepEqual(Object.keys(delays).sort(), ["0.5", "0.99", "1"]);
    // Reading the metrics is not counted.
    for (const [name, { type, samples }] of (await scrape(gw)).families)
      if (type !== "gauge" && type !== "summary") assert.deepEqual(samples, [], name);
  });

  it("a client that leaves is counted as 499 and cancelled, and is no longer in flight", async (t) => {
    const { dir, gw } = await priced(t, { m: stream([chunk({ content: "Once" })], "open") });
    const leaver = new AbortController();
    await gw.chat({ model: "m", stream: true, messages: user("hi") }, {}, leaver.signal);
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

  it("names of models may contain quotes, backslashes, line ends and more", async (t) => {
    const names = ['q"uote', "back\\slash", "new\nline", "\\n", "a,b={}", "__proto__x"];
    names.push("日本語 \u2028", "tab\there", "car\rriage", "bell\u0007");
    const behaviours = Object.fromEntries(names.map((name) => [name, speak("Fine.")]));
    const { gw, ask } = await priced(t, behaviours);
    for (const model of names) await ask({ model });
    await waitFor(() => gw.access.length === names.length, "the access log");
    const { read } = await scrape(gw);
    for (const family of ["requests_total", "attempts_total", "breaker_state", "cost_total"])
      assert.deepEqual(Object.keys(read(`chat_gateway_${family}`, "model")), names, family);
    const durations = read("gen_ai_server_request_duration_seconds_count", "gen_ai_request_model");
    assert.deepEqual(Object.keys(durations), names);
  });

  const ROUNDS = LONG ? 1_000 : 40;
  it(`${ROUNDS} unknown paths, models and keys create no label: only accounts are named, and the output is bounded`, async (t) => {
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

  it("the event loop's delay is in seconds, since the previous read", async (t) => {
    const gw = await startGateway(t, demo());
    const delay = async () =>
      (await scrape(gw)).read("chat_gateway_event_loop_delay_seconds", "quantile");
    const beat = monitorEventLoopDelay({ resolution: 20 });
    beat.enable();
    t.after(() => beat.disable());
    let late = await delay();
    // The gateway's history may have read the figures just before, which reset them.
    for (let tries = 0; tries < 5 && !(late["1"]! >= 0.2); tries += 1) {
      // A monitor measures from its next clock reading. This one was reset after the gateway's, so
      // once it has measured twice, both measure.
      beat.reset();
      await waitFor(() => beat.count >= 2, "two looks at the clock");
      for (const end = performance.now() + 300; performance.now() < end; );
      await waitFor(() => beat.max > 200e6, "the look at the clock that was late");
      late = await delay();
    }
    assert.ok(late["1"]! >= 0.2 && late["1"]! < 60, JSON.stringify(late));
    // The figures are also valid if almost no time has passed since they were read.
    const { "0.5": median, "0.99": most, "1": all } = await delay();
    assert.ok(median! >= 0 && most! >= median! && all! >= most!);
  });
});

const CHAT = "/v1/chat/completions";
const SERVED = ["gen_ai_provider_name", "gen_ai_response_model"];
/** How often each model has served, by its own name and by its provider's names for it. */
const SERVINGS = { whole: 3, free: 1, pieces: 1, good: 1 };
const FIRSTS = { "lab | whole": 3, "other | free": 1, "lab | pieces": 1, "other | good": 1 };

const FAULTS = ["provider", "model", "kind"];
const USED = ["gen_ai_token_type", "gen_ai_response_model"];
const used = (input: number, output: number): Record<string, number> =>
  Object.fromEntries(
    Object.entries(SERVINGS).flatMap(([name, count]) => [
      [`input | ${name}`, count * input],
      [`output | ${name}`, count * output],
    ]),
  );
const prompts = (cache: string, tokens: number): Record<string, number> => ({
  [`whole | whole | ${cache}`]: 3 * tokens,
  [`free | free | ${cache}`]: tokens,
  [`pieces | pieces | ${cache}`]: tokens,
  [`x | good | ${cache}`]: tokens,
});

const EXPECTED: readonly (readonly [string, readonly string[], Record<string, number>])[] = [
  [
    "chat_gateway_requests_total",
    ["path", "status", "model"],
    {
      [`${CHAT} | 200 | whole`]: 3,
      [`${CHAT} | 200 | free`]: 1,
      [`${CHAT} | 200 | good`]: 1,
      [`${CHAT} | 200 | pieces`]: 1,
      [`${CHAT} | 503 | bad`]: 1,
      [`${CHAT} | 429 | `]: 1,
      [`${CHAT} | 401 | `]: 1,
      [`${CHAT} | 404 | `]: 1,
      [`${CHAT} | 400 | `]: 1,
      "other | 404 | ": 2,
      "/healthz | 200 | ": 1,
    },
  ],
  [
    "chat_gateway_attempts_total",
    ["provider", "model", "outcome"],
    {
      "lab | whole | completed": 3,
      "other | free | completed": 1,
      "other | good | completed": 1,
      "lab | pieces | completed": 1,
      "lab | bad | upstream_error": 2,
    },
  ],
  [
    "chat_gateway_refusals_total",
    ["account", "code"],
    {
      "acme | upstream_error": 1,
      "acme | model_not_found": 1,
      "acme | invalid_type": 1,
      "tight | rate_limit_exceeded": 1,
      " | invalid_api_key": 1,
      " | unknown_url": 2,
    },
  ],
  ["chat_gateway_upstream_faults_total", FAULTS, { "lab | bad | server": 2 }],
  [
    "gen_ai_server_request_duration_seconds_count",
    [...SERVED, "gen_ai_request_model", "error_type"],
    {
      "lab | whole | whole | ": 3,
      "other | free | free | ": 1,
      "lab | pieces | pieces | ": 1,
      "other | good | x | ": 1,
      " |  | bad | upstream_error": 1,
    },
  ],
  ["gen_ai_server_time_to_first_token_seconds_count", SERVED, FIRSTS],
  ["chat_gateway_time_between_chunks_seconds_count", ["gen_ai_response_model"], { pieces: 4 }],
  ["gen_ai_client_token_usage_sum", USED, used(COUNTED.prompt_tokens, COUNTED.completion_tokens)],
  ["gen_ai_client_token_usage_count", USED, used(1, 1)],
  [
    "chat_gateway_prompt_tokens_total",
    ["gen_ai_request_model", "gen_ai_response_model", "cache"],
    {
      ...prompts("hit", COUNTED.prompt_cache_hit_tokens),
      ...prompts("miss", COUNTED.prompt_cache_miss_tokens),
    },
  ],
];

/** A stream whose pieces are sent one by one, each after the previous one has been read. */
async function readPieces({ gw, provider }: Awaited<ReturnType<typeof priced>>): Promise<void> {
  const asked = provider.asked.length;
  const response = await gw.chat({ model: "pieces", stream: true, messages: user("hi") });
  const { res } = provider.asked[asked]!;
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const readTo = async (piece: string) => {
    while (!text.includes(piece))
      text += (await within(reader.read(), `the piece ${piece}`)).value ?? assert.fail(text);
  };
  for (let at = 1; at < 5; at += 1) {
    await readTo(`p${at - 1} `);
    res.write(event(chunk({ content: `p${at} ` })));
  }
  await readTo("p4 ");
  res.end(event(chunk({}, "stop")) + event(usageChunk()) + event("[DONE]"));
  await readTo("[DONE]");
}

async function startPriced(t: TestContext) {
  const second = await startProvider(t, { good: speak("Rescued.") });
  /** The first piece is sent at once, the others when the test sends them. */
  const pieces = stream([chunk({ role: "assistant", content: "p0 " })], "open");
  const over = {
    providers: { other: { dialect: "openai", base_url: second.url } },
    models: {
      good: { provider: "other", price: PRICE },
      free: { provider: "other", upstream_model: "good" },
    },
    aliases: { x: { models: ["bad", "good"] } },
    accounts: { tight: { rpm: 1 } },
    keys: [
      { account: "acme", key: KEY },
      { account: "tight", key: "sk-tight" },
    ],
  };
  return priced(t, { whole: speak("A whole reply."), pieces, bad: status(500) }, over);
}

it("metrics have every count, token and cost exactly", async (t) => {
  const site = await startPriced(t);
  const { gw, ask } = site;
  const tight = { authorization: "Bearer sk-tight" };
  for (const [expected, body, headers] of [
    [200, {}],
    [200, {}],
    [200, { model: "free" }],
    [200, {}, tight],
    [429, {}, tight],
    [401, {}, { authorization: "Bearer sk-nobody" }],
    [503, { model: "bad" }],
    [200, { model: "x" }],
    [404, { model: "none" }],
    [400, { messages: 1 }],
  ] as readonly (readonly [number, object, Record<string, string>?])[])
    assert.equal((await ask(body, headers)).status, expected);
  for (const path of ["/nowhere", "/healthz", "/metrics"])
    await (await fetch(`${gw.url}${path}`)).text();
  await readPieces(site);
  await waitFor(() => gw.access.length === 14, "the access log of 14 requests");

  const { read } = await scrape(gw);
  for (const [name, labels, expected] of EXPECTED)
    assert.deepEqual(read(name, ...labels), expected, name);
  // The sums are in seconds: the measured times are not zero.
  const [seconds] = Object.values(read("chat_gateway_time_between_chunks_seconds_sum"));
  assert.ok(seconds! > 0 && seconds! < 60, `${seconds}`);
  const { free: _, ...paid } = SERVINGS;
  const costs = read("chat_gateway_cost_total", "model", "currency");
  assert.equal(Object.keys(costs).length, Object.keys(paid).length, "free models cost nothing");
  for (const [model, count] of Object.entries(paid)) {
    const exact = count * Number(costOf(COUNTED, PRICE));
    const cost = costs[`${model} | USD`] ?? 0;
    assert.ok(Math.abs(cost - exact) <= exact * 1e-12, `${model}: ${cost} against ${exact}`);
  }
});
