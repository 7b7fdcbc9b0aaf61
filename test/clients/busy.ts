// A gateway that has been busy: a clock that begins yesterday and is moved on to now between
// requests, so that the history and the books have what a day of traffic leaves. For the console's
// questions (morning.test.ts) and for its pictures (pictures.ts).

import { configFor, startGateway, user } from "../support/gateway.ts";
import {
  chunk,
  completion,
  startProvider,
  status,
  stream,
  usageChunk,
  type Behaviour,
} from "../support/provider.ts";
import { createRandom } from "../support/random.ts";
import type { Scope } from "../support/scope.ts";
import { until } from "../support/wait.ts";

const MINUTE = 60_000;
/** How far the clock is moved between two bursts of requests: a look sees every slice. */
const STEP_MS = 4_000;
/** Steps of the last quarter of an hour, and a bit more. */
const STEPS = 240;

const ACCOUNTS = ["acme", "globex", "initech", "hooli"];
const keyOf = (account: string): string => `sk-${account}-key-of-the-busy-gateway`;

/** What the provider says when it fails; the key in it must not be shown. */
const WORDS = "The engine is out of memory. Request was made with sk-provider-secret-0123456789.";

const priced = (provider: string, input: number, output: number, scores: object) => ({
  provider,
  context_tokens: 128_000,
  price: { input_cache_hit: input / 10, input_cache_miss: input, output },
  ...scores,
});

const settingsOf = (broken: string): object => ({
  usage: { sync_ms: 100 },
  providers: {
    forge: { dialect: "openai", base_url: broken, api_key: "sk-provider-secret-0123456789" },
  },
  models: {
    "lab-large": priced("lab", 3, 15, { quality_score: 90, reasoning: true, reasoning_score: 88 }),
    "lab-small": priced("lab", 0.25, 1.25, { quality_score: 71 }),
    "lab-mini": priced("lab", 0.1, 0.4, { quality_score: 60 }),
    "forge-70b": priced("forge", 0.05, 0.2, { quality_score: 78 }),
  },
  aliases: {
    "auto/chat": { policy: "value" },
    "auto/reasoning": { policy: "reasoning" },
    "team/fast": { models: ["forge-70b", "lab-small", "lab-mini"] },
  },
  keys: ACCOUNTS.map((account) => ({ account, key: keyOf(account) })),
  accounts: { initech: { rpm: 12 }, hooli: { rpm: 600 } },
  breaker: { failures: 3, cooldown_ms: 45_000 },
});

export type Busy = Awaited<ReturnType<typeof startBusy>>;

/** Replies that take a little time, of a length that depends on the model. */
function replies(): Behaviour {
  const { between } = createRandom(7);
  return (asked) => {
    const words = between(8, 30);
    const prompt = between(200, 4_000);
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: words * 2,
      total_tokens: prompt + words * 2,
      prompt_tokens_details: { cached_tokens: Math.floor(prompt / between(2, 6)) },
    };
    const said = Array.from({ length: words }, (_, n) => `word ${n} `);
    const chunks = [...said.map((content) => chunk({ content })), chunk({}, "stop")];
    const reply = asked.body["stream"]
      ? stream([...chunks, usageChunk(usage)])
      : status(200, completion({ content: said.join("") }, "stop", { usage }));
    const slowest = asked.body["model"] === "lab-large" ? 60 : 30;
    setTimeout(() => reply(asked), between(4, slowest));
  };
}

/** `yesterday`: in UTC, YYYY-MM-DD. */
export async function startBusy(t: Scope) {
  const lab = await startProvider(t, replies());
  const forge = await startProvider(t, status(500, { error: { message: WORDS } }));
  const sinceMidnight = Date.now() % (24 * 60 * MINUTE);
  // Ten in the evening of yesterday.
  let behind = sinceMidnight + 2 * 60 * MINUTE;
  const now = (): number => Date.now() - behind;
  const monotonic = (): number => performance.now() - behind;
  const config = configFor(lab.url, [], settingsOf(forge.url));
  const running = await startGateway(t, config, { now, monotonic });
  const { url, diagnostics } = running;
  const admin = running.gateway.adminAddress()!;

  async function ask(account: string, model: string, more: object = {}): Promise<void> {
    const body = { model, messages: user("Tell me something."), stream: true, ...more };
    const response = await running.chat(body, { authorization: `Bearer ${keyOf(account)}` });
    await response.text();
  }

  async function strangers(): Promise<void> {
    await (await running.chat({}, { authorization: "Bearer sk-nobody" })).text();
  }

  function burst(step: number, steps: number): Promise<unknown>[] {
    const requests: Promise<unknown>[] = [
      ask("acme", "auto/chat"),
      ask("globex", "lab-small"),
      ask("hooli", "auto/chat"),
    ];
    if (step % 4 === 0) requests.push(ask("globex", "lab-large", { stream: false }));
    if (step % 5 === 0) requests.push(ask("acme", "auto/reasoning"));
    // Near the end of the quarter of an hour one account asks too often.
    if (step > steps * 0.6)
      requests.push(...Array.from({ length: 3 }, () => ask("initech", "lab-mini")));
    if (step % 25 === 0) requests.push(strangers());
    if (step % 60 === 30 || step > steps - 4) requests.push(ask("hooli", "forge-70b"));
    return requests;
  }

  /** Lets the history take in what has happened. */
  const look = async () => {
    await (await fetch(`${admin}/status`)).text();
  };

  /** Moves the clock on while requests come. */
  async function pass(steps: number): Promise<void> {
    for (let step = 0; step < steps; step += 1) {
      await Promise.all(burst(step, steps));
      behind = Math.max(0, behind - STEP_MS);
      await look();
    }
  }

  const yesterday = new Date(now()).toISOString().slice(0, 10);
  for (let n = 0; n < 12; n += 1) await ask("acme", n % 3 === 0 ? "lab-large" : "lab-small");
  for (let n = 0; n < 5; n += 1) await ask("globex", "lab-mini");
  await look();
  behind = Math.min(STEPS * STEP_MS, sinceMidnight);
  await pass(STEPS);
  behind = 0;
  await until(async () => {
    const { usage } = (await (await fetch(`${admin}/status`)).json()) as any;
    return usage.lag_seconds !== null && usage.lag_seconds < 1;
  }, "the usage records");
  return { url, admin, diagnostics, yesterday };
}
