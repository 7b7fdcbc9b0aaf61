// GET /metrics: what Prometheus is told. Read with a parser that takes nothing but its text format,
// and compared with traffic whose every request is known, and with the books.

import assert from "node:assert/strict";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, it, type TestContext } from "node:test";
import {
  COUNTED,
  PRICE,
  priced,
  settled,
  settles,
  sum,
  type Line,
} from "../../../support/books.ts";
import {
  configFor,
  demo,
  KEY,
  startGateway,
  user,
  type RunningGateway,
} from "../../../support/gateway.ts";
import { LONG } from "../../../support/long.ts";
import {
  chunk,
  event,
  speak,
  startProvider,
  status,
  usageChunk,
  type Behaviour,
} from "../../../support/provider.ts";
import { waitFor, within } from "../../../support/wait.ts";

// ---- the text format: https://prometheus.io/docs/instrumenting/exposition_formats/

interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}
interface Family {
  readonly type: string;
  readonly samples: readonly Sample[];
}

const LABEL = String.raw`[a-zA-Z_]\w*="(?:[^"\\]|\\[\\"n])*"`;
const SAMPLE = new RegExp(
  String.raw`^([a-zA-Z_:][\w:]*)(?:\{(${LABEL}(?:,${LABEL})*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$`,
);

/** One sample; nothing but \\, \" and \n is escaped in a label. */
function parseSample(line: string): Sample {
  const [, name, all = "", value] = SAMPLE.exec(line) ?? assert.fail(`no sample: ${line}`);
  const pairs = [...all.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label, text]) =>
      [label!, text!.replace(/\\(.)/g, (_, it: string) => (it === "n" ? "\n" : it))] as const,
  );
  const labels = new Map(pairs);
  assert.equal(labels.size, pairs.length, `a label stands twice in ${line}`);
  return { name: name!, labels, value: Number(value) };
}

const identity = ({ name, labels }: Sample): string => JSON.stringify([name, [...labels].sort()]);

/**
 * All families by name. Each has its HELP, then its TYPE, then its samples, and nothing of it comes
 * later.
 */
function parse(text: string): Map<string, Family> {
  assert.ok(text.endsWith("\n"), "the last line must end");
  const families = new Map<string, Family>();
  for (const part of text.split(/^# HELP /m).slice(1)) {
    const [help = "", head = "", ...lines] = part.slice(0, -1).split("\n");
    const [, name = "", type = ""] =
      /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(head) ?? assert.fail(head);
    assert.ok(
      help.startsWith(`${name} `) && help.length > name.length + 1 && !/\\(?![\\n])/.test(help),
      help,
    );
    assert.ok(!families.has(name), `${name} stands twice`);
    assert.equal(type === "counter", name.endsWith("_total"), `${name}: counters end with _total`);
    const samples = lines.map(parseSample);
    const endings = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
    for (const sample of samples)
      assert.ok(
        endings.some((ending) => sample.name === name + ending),
        sample.name,
      );
    assert.equal(new Set(samples.map(identity)).size, samples.length, `twice in ${name}`);
    if (type === "counter")
      assert.ok(
        samples.every(({ value }) => value >= 0),
        name,
      );
    if (type === "histogram") assertHistogram(name, samples);
    families.set(name, { type, samples });
  }
  assert.ok(text.startsWith("# HELP "), "nothing stands before the first family");
  return families;
}

/** Per set of labels: buckets that rise to +Inf, whose counts only grow to the count of all. */
function assertHistogram(name: string, samples: readonly Sample[]): void {
  const rowOf = ({ labels }: Sample): string =>
    JSON.stringify([...labels].filter(([label]) => label !== "le").sort());
  for (const row of new Set(samples.map(rowOf))) {
    const all = samples.filter((sample) => rowOf(sample) === row);
    const of = (ending: string) => all.filter((sample) => sample.name === name + ending);
    const buckets = of("_bucket");
    const bounds = buckets.map(({ labels }) =>
      Number(labels.get("le")!.replace("+Inf", "Infinity")),
    );
    const counts = buckets.map(({ value }) => value);
    const rises = (list: readonly number[]) =>
      list.every((value, at) => at === 0 || value >= list[at - 1]!);
    assert.ok(bounds.length > 1, `${name}${row}: ${bounds}`);
    assert.ok(rises(bounds) && new Set(bounds).size === bounds.length, `${name}${row}: ${bounds}`);
    assert.ok(rises(counts) && counts.every(Number.isInteger), `${name}${row}: ${counts}`);
    assert.equal(bounds.at(-1), Infinity);
    assert.deepEqual(
      of("_count").map(({ value }) => value),
      [counts.at(-1)],
    );
    assert.equal(of("_sum").length, 1);
  }
}

async function scrape({ gateway }: RunningGateway) {
  const response = await fetch(`${gateway.adminAddress()}/metrics`);
  assert.deepEqual(
    [response.status, response.headers.get("content-type")],
    [200, "text/plain; version=0.0.4; charset=utf-8"],
  );
  const text = await response.text();
  const families = parse(text);
  /** The values of one family's samples of this name, by the values of these labels. */
  const read = (name: string, ...of: readonly string[]): Record<string, number> => {
    const samples = [...families.values()]
      .flatMap((family) => family.samples)
      .filter((sample) => sample.name === name);
    return Object.fromEntries(
      samples.map(({ labels, value }) => [of.map((label) => labels.get(label)).join(" | "), value]),
    );
  };
  return { text, families, read };
}

const FAMILIES = {
  chat_gateway_requests_total: "counter",
  chat_gateway_attempts_total: "counter",
  chat_gateway_refusals_total: "counter",
  chat_gateway_upstream_faults_total: "counter",
  chat_gateway_recoveries_total: "counter",
  gen_ai_server_request_duration_seconds: "histogram",
  gen_ai_server_time_to_first_token_seconds: "histogram",
  chat_gateway_time_between_chunks_seconds: "histogram",
  gen_ai_client_token_usage: "histogram",
  chat_gateway_prompt_tokens_total: "counter",
  chat_gateway_cost_total: "counter",
  chat_gateway_budget_spent: "gauge",
  chat_gateway_budget_held: "gauge",
  chat_gateway_budget_limit: "gauge",
  chat_gateway_log_lines_dropped_total: "counter",
  chat_gateway_telemetry_spans_total: "counter",
  chat_gateway_in_flight_requests: "gauge",
  chat_gateway_breaker_state: "gauge",
  chat_gateway_event_loop_delay_seconds: "summary",
  chat_gateway_limits_store_up: "gauge",
  chat_gateway_spend_log_writable: "gauge",
  chat_gateway_config_last_reload_successful: "gauge",
  chat_gateway_config_last_reload_success_timestamp_seconds: "gauge",
  chat_gateway_keys_readable: "gauge",
  chat_gateway_usage_sync_lag_seconds: "gauge",
  chat_gateway_workers: "gauge",
};

/** Tokens of prompts in the books: by the names of models, as asked and served, and by cache. */
function promptsIn(lines: readonly Line[]): Record<string, number> {
  const prompts: Record<string, number> = {};
  for (const { usage, model_requested, model_served } of lines)
    for (const cache of model_served === null ? [] : ["hit", "miss"]) {
      const key = `${model_requested} | ${model_served} | ${cache}`;
      prompts[key] = (prompts[key] ?? 0) + usage[`prompt_cache_${cache}_tokens`];
    }
  return prompts;
}

describe("metrics", () => {
  it("before any traffic: every family with its help and kind, and what is so at the moment", async (t) => {
    const gw = await startGateway(t, demo());
    const { families, read } = await scrape(gw);
    assert.deepEqual(
      Object.fromEntries([...families].map(([name, { type }]) => [name, type])),
      FAMILIES,
    );
    for (const [name, value] of [
      ["in_flight_requests", 0],
      ["limits_store_up", 1],
      ["spend_log_writable", 1],
      ["keys_readable", 1],
      ["workers", 1],
    ] as const)
      assert.deepEqual(read(`chat_gateway_${name}`), { "": value });
    assert.deepEqual(read("chat_gateway_breaker_state", "model"), {
      "demo-chat": 0,
      "demo-reasoner": 0,
    });
    assert.deepEqual(
      Object.keys(read("chat_gateway_event_loop_delay_seconds", "quantile")).sort(),
      ["0.5", "0.99", "1"],
    );
    for (const [name, { type, samples }] of families)
      if (type !== "gauge" && type !== "summary")
        assert.deepEqual(samples, [], `${name}: nothing has happened`);
    const again = await scrape(gw);
    assert.deepEqual(
      again.read("chat_gateway_requests_total", "path"),
      {},
      "those who look are not counted",
    );
  });

  it("after known traffic: every count exactly, tokens and cost as the books have them", async (t) => {
    const second = await startProvider(t, { good: speak("Rescued.") });
    /** The first piece at once, the others when the test says. */
    const piecewise: Behaviour = ({ res }) => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(event(chunk({ role: "assistant", content: "p0 " })));
    };
    const { gw, dir, provider, ask } = await priced(
      t,
      { whole: speak("A whole reply."), pieces: piecewise, bad: status(500) },
      {
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
      },
    );
    const tight = { authorization: "Bearer sk-tight" };
    assert.deepEqual(
      [(await ask()).status, (await ask()).status, (await ask({ model: "free" })).status],
      [200, 200, 200],
    );
    assert.deepEqual([(await ask({}, tight)).status, (await ask({}, tight)).status], [200, 429]);
    assert.equal((await ask({}, { authorization: "Bearer sk-nobody" })).status, 401);
    assert.deepEqual(
      [
        (await ask({ model: "bad" })).status,
        (await ask({ model: "x" })).status,
        (await ask({ model: "none" })).status,
      ],
      [503, 200, 404],
    );
    assert.equal((await ask({ messages: 1 })).status, 400);
    for (const path of ["/nowhere", "/healthz", "/metrics"])
      await (await fetch(`${gw.url}${path}`)).text();

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
    await waitFor(() => gw.access.length === 14, "the access log of 14 requests");

    const { families, read } = await scrape(gw);
    const chat = "/v1/chat/completions";
    assert.deepEqual(read("chat_gateway_requests_total", "path", "status", "model"), {
      [`${chat} | 200 | whole`]: 3,
      [`${chat} | 200 | free`]: 1,
      [`${chat} | 200 | good`]: 1,
      [`${chat} | 200 | pieces`]: 1,
      [`${chat} | 503 | bad`]: 1,
      [`${chat} | 429 | `]: 1,
      [`${chat} | 401 | `]: 1,
      [`${chat} | 404 | `]: 1,
      [`${chat} | 400 | `]: 1,
      "other | 404 | ": 2,
      "/healthz | 200 | ": 1,
    });
    assert.deepEqual(read("chat_gateway_attempts_total", "provider", "model", "outcome"), {
      "lab | whole | completed": 3,
      "other | free | completed": 1,
      "other | good | completed": 1,
      "lab | pieces | completed": 1,
      "lab | bad | upstream_error": 2,
    });
    assert.deepEqual(read("chat_gateway_refusals_total", "account", "code"), {
      "acme | upstream_error": 1,
      "acme | model_not_found": 1,
      "acme | invalid_type": 1,
      "tight | rate_limit_exceeded": 1,
      " | invalid_api_key": 1,
      " | unknown_url": 2,
    });
    assert.deepEqual(read("chat_gateway_upstream_faults_total", "provider", "model", "kind"), {
      "lab | bad | server": 2,
    });
    const chatLabels = ["gen_ai_provider_name", "gen_ai_response_model"];
    assert.deepEqual(
      read(
        "gen_ai_server_request_duration_seconds_count",
        ...chatLabels,
        "gen_ai_request_model",
        "error_type",
      ),
      {
        "lab | whole | whole | ": 3,
        "other | free | free | ": 1,
        "lab | pieces | pieces | ": 1,
        "other | good | x | ": 1,
        " |  | bad | upstream_error": 1,
      },
    );
    assert.deepEqual(read("gen_ai_server_time_to_first_token_seconds_count", ...chatLabels), {
      "lab | whole": 3,
      "other | free": 1,
      "other | good": 1,
      "lab | pieces": 1,
    });
    assert.deepEqual(
      read("chat_gateway_time_between_chunks_seconds_count", "gen_ai_response_model"),
      { pieces: 4 },
    );

    /** By the model that served, what the books have. */
    const booked = (figure: (line: Line) => number): Record<string, number> => {
      const of: Record<string, number> = {};
      for (const line of settles(dir))
        if (line["model_served"] !== null)
          of[line["model_served"]] = (of[line["model_served"]] ?? 0) + figure(line);
      return of;
    };
    const tokens = (part: "sum" | "count", type: string) =>
      Object.fromEntries(
        Object.entries(
          read(`gen_ai_client_token_usage_${part}`, "gen_ai_token_type", "gen_ai_response_model"),
        ).flatMap(([key, value]) =>
          key.startsWith(`${type} | `) ? [[key.split(" | ")[1], value]] : [],
        ),
      );
    for (const [type, field] of [
      ["input", "prompt_tokens"],
      ["output", "completion_tokens"],
    ] as const) {
      assert.deepEqual(
        tokens("sum", type),
        booked(({ usage }) => usage[field]),
      );
      assert.deepEqual(
        tokens("count", type),
        booked(() => 1),
      );
    }
    assert.equal(tokens("sum", "input")["whole"], 3 * COUNTED.prompt_tokens);
    const prompts = promptsIn(settles(dir));
    assert.ok(prompts["x | good | miss"]! > 0);
    assert.deepEqual(
      read(
        "chat_gateway_prompt_tokens_total",
        "gen_ai_request_model",
        "gen_ai_response_model",
        "cache",
      ),
      prompts,
    );
    const costs = read("chat_gateway_cost_total", "model", "currency");
    assert.deepEqual(
      Object.keys(costs).sort(),
      ["good | USD", "pieces | USD", "whole | USD"],
      "what is free costs nothing",
    );
    for (const [key, cost] of Object.entries(costs)) {
      const exact = Number(
        sum(
          settles(dir).flatMap((line) =>
            `${line["model_served"]} | USD` === key ? [line["cost"]] : [],
          ),
        ),
      );
      assert.ok(
        exact > 0 && Math.abs(cost - exact) <= exact * 1e-12,
        `${key}: ${cost} against ${exact}`,
      );
    }
    // What took time, took it: the sums are seconds.
    const [seconds] = Object.values(read("chat_gateway_time_between_chunks_seconds_sum"));
    assert.ok(seconds! > 0 && seconds! < 60, `${seconds}`);
    assert.equal(families.size, Object.keys(FAMILIES).length);
  });

  it("a client that leaves is counted as 499 and cancelled, and is no longer in flight", async (t) => {
    const { dir, gw } = await priced(t, {
      m: ({ res }) => {
        res.writeHead(200, { "content-type": "text/event-stream" });
        res.write(event(chunk({ content: "Once" })));
      },
    });
    const leaver = new AbortController();
    const response = await fetch(`${gw.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", stream: true, messages: user("hi") }),
      signal: leaver.signal,
    });
    assert.equal(response.status, 200);
    assert.deepEqual((await scrape(gw)).read("chat_gateway_in_flight_requests"), { "": 1 });
    leaver.abort();
    await waitFor(() => gw.access.length === 1, "its line in the access log");
    assert.deepEqual((await scrape(gw)).read("chat_gateway_in_flight_requests"), { "": 0 });
    await settled(dir);
    const { read } = await scrape(gw);
    assert.deepEqual(read("chat_gateway_in_flight_requests"), { "": 0 });
    assert.deepEqual(read("chat_gateway_requests_total", "status", "model"), { "499 | m": 1 });
    assert.deepEqual(read("chat_gateway_attempts_total", "outcome"), { cancelled: 1 });
  });

  async function named(t: TestContext, names: readonly string[]): Promise<void> {
    const provider = await startProvider(t, speak("Fine."));
    const gw = await startGateway(
      t,
      configFor(provider.url, names, {
        models: Object.fromEntries(names.map((name) => [name, { price: PRICE }])),
      }),
    );
    for (const name of names) await (await gw.chat({ model: name, messages: user("hi") })).text();
    await waitFor(() => gw.access.length === names.length, "the access log");
    const { read } = await scrape(gw);
    const once = Object.fromEntries(names.map((name) => [name, 1]));
    assert.deepEqual(read("chat_gateway_requests_total", "model"), once);
    assert.deepEqual(read("chat_gateway_attempts_total", "model"), once);
    assert.deepEqual(
      read("gen_ai_server_request_duration_seconds_count", "gen_ai_request_model"),
      once,
    );
    assert.deepEqual(
      read("chat_gateway_breaker_state", "model"),
      Object.fromEntries(names.map((name) => [name, 0])),
    );
    assert.deepEqual(Object.keys(read("chat_gateway_cost_total", "model")), names);
  }
  it("names of models with quotes, backslashes, line ends and more are what they are", (t) =>
    named(t, [
      ...['q"uote', "back\\slash", "new\nline", "\\n", "a,b={}", "__proto__x", "日本語 \u2028"],
      ...["tab\there", "car\rriage", "bell\u0007"],
    ]));

  const ROUNDS = LONG ? 1_000 : 80;
  it(`${ROUNDS} unknown paths, models and keys make no label: only accounts are named, and what is told stays bounded`, async (t) => {
    const provider = await startProvider(t, { m: speak("Fine.") });
    const gw = await startGateway(
      t,
      configFor(provider.url, ["m"], { keys: [{ account: "acme", key: KEY }] }),
    );
    const round = async (mark: string) => {
      const get = await fetch(`${gw.url}/canary-path-${mark}?canary-query`, {
        headers: { "x-request-id": `canary-id-${mark}` },
      });
      const model = await gw.chat({ model: `canary-model-${mark}`, messages: user("hi") });
      const key = await gw.chat(
        { model: "m", messages: user("hi") },
        { authorization: `Bearer canary-key-${mark}` },
      );
      const good = await gw.chat({ model: "m", messages: user("hi"), user: `canary-user-${mark}` });
      for (const response of [get, model, key, good]) await response.arrayBuffer();
      assert.deepEqual([get.status, model.status, key.status, good.status], [404, 404, 401, 200]);
    };
    const shape = ({ families }: Awaited<ReturnType<typeof scrape>>) =>
      [...families.values()].flatMap(({ samples }) => samples.map(identity)).sort();
    await round("first");
    for (const path of ["/__proto__", "/constructor", "/V1/models"])
      await (await fetch(gw.url + path)).arrayBuffer();
    await waitFor(() => gw.access.length === 7, "the first lines of the access log");
    const before = shape(await scrape(gw));
    for (let at = 0; at < ROUNDS; at += 8)
      await Promise.all(
        Array.from({ length: 8 }, (_, index) => round(`${at + index}-${Math.random()}`)),
      );
    await waitFor(() => gw.access.length === 7 + 4 * ROUNDS, "the access log of all");
    const after = await scrape(gw);
    assert.deepEqual(shape(after), before);
    const keyId = String(gw.access.find((line) => typeof line["key_id"] === "string")!["key_id"]);
    for (const word of ["canary", KEY, keyId, "key_", "__proto__", "constructor"])
      assert.ok(!after.text.includes(word), word);
    assert.equal(
      after.read("chat_gateway_requests_total", "path", "status", "model")["other | 404 | "],
      ROUNDS + 4,
    );
  });

  it("a breaker is 0 while closed, 2 when open, 1 while it is probed", async (t) => {
    const clock = { now: 0 };
    let behaviour: Behaviour = status(500);
    const provider = await startProvider(t, {
      m: (asked) => behaviour(asked),
      other: speak("Fine."),
    });
    const gw = await startGateway(
      t,
      configFor(provider.url, ["m", "other"], { breaker: { failures: 2, cooldown_ms: 10_000 } }),
      { monotonic: () => clock.now },
    );
    const states = async () => (await scrape(gw)).read("chat_gateway_breaker_state", "model");
    const ask = async () => (await gw.chat({ model: "m", messages: user("hi") })).text();
    await ask();
    assert.deepEqual(await states(), { m: 0, other: 0 });
    await ask();
    assert.deepEqual(await states(), { m: 2, other: 0 });
    clock.now += 10_000;
    behaviour = () => undefined;
    const probe = ask();
    const { res } = await provider.nth(2);
    assert.deepEqual(await states(), { m: 1, other: 0 });
    res.writeHead(500).end();
    await probe;
    assert.deepEqual(await states(), { m: 2, other: 0 });
    clock.now += 10_000;
    behaviour = speak("Well again.");
    await ask();
    assert.deepEqual(await states(), { m: 0, other: 0 });
  });

  it("the event loop's delay is told in seconds, and is that since it was last looked at", async (t) => {
    const gw = await startGateway(t, demo());
    const delay = async () =>
      (await scrape(gw)).read("chat_gateway_event_loop_delay_seconds", "quantile");
    await delay();
    // The measuring begins with the next look at the clock: this one, which begins later, has had
    // two.
    const beat = monitorEventLoopDelay({ resolution: 20 });
    beat.enable();
    t.after(() => beat.disable());
    await waitFor(() => beat.count >= 2, "two looks at the clock");
    let late: Awaited<ReturnType<typeof delay>> = {};
    // The gateway may have begun anew just before, when it took figures for its history.
    for (let tries = 0; tries < 5 && !(late["1"]! >= 0.2); tries += 1) {
      for (const end = performance.now() + 300; performance.now() < end; );
      await waitFor(() => beat.max > 200e6, "the look at the clock that was late");
      late = await delay();
    }
    assert.ok(late["1"]! >= 0.2 && late["1"]! < 60, JSON.stringify(late));
    for (let at = 0; at < 3; at += 1) {
      const { "0.5": median, "0.99": most, "1": all } = await delay();
      assert.ok(
        median! >= 0 && most! >= median! && all! >= most!,
        "also where hardly a moment has passed since the last look",
      );
    }
  });
});
