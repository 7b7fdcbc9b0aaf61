// The counts of GET /metrics after traffic whose every request is known.

import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { COUNTED, costOf, PRICE, priced } from "../../../support/books.ts";
import { KEY, user } from "../../../support/gateway.ts";
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
import { scrape } from "./read-metrics.ts";

const CHAT = "/v1/chat/completions";
const SERVED = ["gen_ai_provider_name", "gen_ai_response_model"];
/** How often each model has served, by its name, and by those that its provider has too. */
const SERVINGS = { whole: 3, free: 1, pieces: 1, good: 1 };
const FIRSTS = { "lab | whole": 3, "other | free": 1, "lab | pieces": 1, "other | good": 1 };

const times = (prefix: string, tokens: number): Record<string, number> =>
  Object.fromEntries(
    Object.entries(SERVINGS).map(([name, count]) => [`${prefix} | ${name}`, count * tokens]),
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
  [
    "chat_gateway_upstream_faults_total",
    ["provider", "model", "kind"],
    { "lab | bad | server": 2 },
  ],
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
  [
    "gen_ai_client_token_usage_sum",
    ["gen_ai_token_type", "gen_ai_response_model"],
    { ...times("input", COUNTED.prompt_tokens), ...times("output", COUNTED.completion_tokens) },
  ],
  [
    "gen_ai_client_token_usage_count",
    ["gen_ai_token_type", "gen_ai_response_model"],
    { ...times("input", 1), ...times("output", 1) },
  ],
  [
    "chat_gateway_prompt_tokens_total",
    ["gen_ai_request_model", "gen_ai_response_model", "cache"],
    {
      ...prompts("hit", COUNTED.prompt_cache_hit_tokens),
      ...prompts("miss", COUNTED.prompt_cache_miss_tokens),
    },
  ],
];

/** A stream whose pieces come one after the other, each when the one before it has been read. */
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
  /** The first piece at once, the others when the test says. */
  const pieces: Behaviour = ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(event(chunk({ role: "assistant", content: "p0 " })));
  };
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

it("metrics have every count exactly, and tokens and cost to the last digit", async (t) => {
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
  // What took time, took it: the sums are seconds.
  const [seconds] = Object.values(read("chat_gateway_time_between_chunks_seconds_sum"));
  assert.ok(seconds! > 0 && seconds! < 60, `${seconds}`);
  const { free: _, ...paid } = SERVINGS;
  const costs = read("chat_gateway_cost_total", "model", "currency");
  assert.equal(Object.keys(costs).length, Object.keys(paid).length, "what is free costs nothing");
  for (const [model, count] of Object.entries(paid)) {
    const exact = count * Number(costOf(COUNTED, PRICE));
    const cost = costs[`${model} | USD`] ?? 0;
    assert.ok(Math.abs(cost - exact) <= exact * 1e-12, `${model}: ${cost} against ${exact}`);
  }
});
