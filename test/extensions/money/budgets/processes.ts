// Gateways with budgets as real processes, for tests that kill them, and their clients.

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { amountOf } from "../../../../scripts/reconcile/money.ts";
import { KEY, merge, user } from "../../../support/gateway.ts";
import {
  chunk,
  completion,
  speak,
  status,
  stream,
  type Behaviour,
} from "../../../support/provider.ts";
import { until } from "../../../support/wait.ts";
import * as clients from "../../scale/cluster/bench.ts";
import type { Reply } from "../../scale/cluster/bench.ts";

/** A process takes a while to start, especially beside others. */
export const LONG_MS = 30_000;

/** Currency per million tokens of the prompt and of the reply. */
export const PRICE = { input_cache_miss: 1, output: 10 };
/** The cost of a request with the provider's usage, in pico-units: 20 prompt and 7 reply tokens. */
export const COST = 90_000_000n;
/** Its hold: 57 bytes of JSON, and 7 tokens. */
export const HOLD = 127_000_000n;

export const budget = (amount: bigint, period = "total"): object => ({
  accounts: { acme: { budget: { amount: amountOf(amount), period } } },
});

const endlessly = stream([chunk({ content: "Fi" })], "open");

/** Replies with as many tokens as max_tokens allows, or with a million if it is absent. */
export const unbounded: Behaviour = (asked) => {
  const { max_tokens: completion_tokens = 1_000_000, stream: isStream } = asked.body as any;
  const usage = { prompt_tokens: 20, completion_tokens, total_tokens: 20 + completion_tokens };
  const parts = [chunk({ content: "Word." }), chunk({}, "length"), { ...chunk({}), usage }];
  const whole = completion({ content: "Word." }, "length", { usage });
  (isStream ? stream(parts) : status(200, whole))(asked);
};

/** A request without max_tokens, which costs 0.30 at most. */
export const OPEN = { model: "open", max_tokens: undefined };
const OPEN_MODEL = { price: PRICE, max_output_tokens: 30_000 };

/** A gateway with its own provider and data_dir. `cwd`: where optional packages are resolved. */
export async function start(t: TestContext, over: object, cwd?: string) {
  const models = Object.fromEntries(
    ["m", "endless", "open"].map((name) => [name, { provider: "lab", price: PRICE }]),
  );
  const base = { server: { workers: 1 }, models: merge(models, { open: OPEN_MODEL }) };
  const behaviours = { m: speak("Fine."), endless: endlessly, open: unbounded };
  const at = await clients.bench(t, merge(base, over) as object, behaviours, cwd);
  const { gw: running, address: url } = at;
  /** The state of the budgets. Empty while no process serves. */
  const standing = async (): Promise<Record<string, any>[]> =>
    (await at.readStatus())["budgets"] ?? [];
  return { ...at, running, url, standing };
}

export const untilStanding = (
  look: () => Promise<Record<string, any>[]>,
  wanted: Record<string, string>,
): Promise<unknown> =>
  until(
    async () => {
      const [row] = await look();
      return Object.entries(wanted).every(([name, value]) => row?.[name] === value);
    },
    `a budget with ${JSON.stringify(wanted)}`,
    LONG_MS,
  );

/** Sends a request on a new connection. */
const post = (url: string, body: object, key: string): Promise<Reply> =>
  clients.ask(url, { messages: user("Say something."), max_tokens: 7, ...body }, key);

export const ask = (url: string, body: object = {}, key = KEY): Promise<number> =>
  clients.status(post(url, body, key));

/** Opens a stream, and leaves it open. */
export async function begin(url: string, body: object = {}): Promise<Reply> {
  const reply = await post(url, { model: "endless", stream: true, ...body }, KEY);
  assert.equal(reply.status, 200);
  return reply;
}
