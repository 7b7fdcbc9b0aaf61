// What the client suites share: one gateway that serves the demo models and a scripted provider's, what that provider says,
// and the words to skip with where a client library is not installed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import type { TestContext } from "node:test";
import demoConfig from "../../src/config/demo.json" with { type: "json" };
import type { GatewayDeps } from "../../src/gateway.ts";
import { demoModel, type Model } from "../support/fake-provider.ts";
import { configFor, demo, KEY, merge, startGateway, type RunningGateway } from "../support/gateway.ts";
import { chunk, completion, silent, speak, startProvider, status, stream, usageChunk, type Behaviour, type Provider } from "../support/provider.ts";
import { waitFor } from "../support/wait.ts";

/** False, or why a suite is skipped; where the clients are demanded (in CI) that is an error instead. */
export function skipUnless(present: boolean, otherwise: string): false | string {
  if (present) return false;
  if (process.env["REQUIRE_CLIENTS"] === "1") throw new Error(otherwise);
  return otherwise;
}

export const notInstalled = () => skipUnless(existsSync(new URL("node_modules", import.meta.url)), "run npm ci in test/clients");

export const PYTHON = process.env["CLIENTS_PYTHON"] ?? "python3";

export const noPython = () =>
  skipUnless(spawnSync(PYTHON, ["-c", "import openai"]).status === 0, `${PYTHON} cannot import openai: pip install -r test/clients/requirements.txt, or set CLIENTS_PYTHON`);

export const GENERATED_ID = /^req_[0-9a-f]{32}$/;

/** May use demo-chat and nothing else. */
export const RESTRICTED_KEY = "sk-test-restricted-key";

/** What a careless relay would change: white space, quotes, backslashes, markup, several scripts, joined emoji. */
export const TEXT = 'Grüße aus Oslo!\n\n  Two  spaces, "quotes", back\\slashes,\ttabs, <b>&amp;</b>: data: [DONE] 你好 👩‍👩‍👧 мир\u2028end.';
export const REASONING = "First the greeting,\nthen the city.";

/** Two calls at once. The arguments are JSON, but not as JSON.stringify writes it: only a copy byte for byte equals them. */
export const CALLS = [
  { id: "call_Oslo-1", name: "get_time", arguments: '{"city" : "Oslo",  "note":"a \\"quoted\\" na\\u00efve 👋"}' },
  { id: "call_Lima-2", name: "get_time", arguments: '{ "city":"Lima" }' },
] as const;

/** What the scripted model says when it has both results. */
export const AFTER_CALLS = "It is 14:05 in Oslo and 08:05 in Lima.";
export const clock = (city: string): string => ({ Oslo: "14:05", Lima: "08:05" })[city] ?? `no clock in ${city}`;

/** Both calls, whole or as fragments of a few letters that alternate between the two. */
const callBoth: Behaviour = (asked) => {
  const named = CALLS.map(({ id, name }) => ({ id, type: "function", function: { name } }));
  if (!asked.body["stream"]) {
    const tool_calls = named.map((call, index) => ({ ...call, function: { ...call.function, arguments: CALLS[index]!.arguments } }));
    return status(200, completion({ content: null, tool_calls }, "tool_calls"))(asked);
  }
  const pieces = CALLS.map((call) => call.arguments.match(/.{1,5}/gsu) ?? []);
  const rounds = Math.max(...pieces.map((each) => each.length));
  const fragments = Array.from({ length: rounds }, (_, round) =>
    pieces.flatMap((each, index) => (each[round] === undefined ? [] : [{ index, function: { arguments: each[round] } }])),
  ).flat();
  return stream([
    chunk({ role: "assistant", content: null }),
    ...named.map((call, index) => chunk({ tool_calls: [{ index, ...call, function: { ...call.function, arguments: "" } }] })),
    ...fragments.map((fragment) => chunk({ tool_calls: [fragment] })),
    chunk({}, "tool_calls"),
    usageChunk(),
  ])(asked);
};

const HALF = [chunk({ role: "assistant", content: "" }), chunk({ content: "Half of" })];

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  exact: speak(TEXT, { reasoning: REASONING }),
  parallel: (asked) => (asked.body["messages"].at(-1).role === "tool" ? speak(AFTER_CALLS) : callBoth)(asked),
  endless: stream(HALF, "open"),
  silent,
  broken: status(500, { error: { message: "the provider's own words" } }),
  "error-event": stream([...HALF, { error: { message: "the provider's own words" } }], "eof"),
  cut: stream(HALF, "cut"),
  unfinished: stream(HALF, "eof"),
};

/** The same models for the fakes of other formats, and the demo models, which the gateway has itself. */
export const MODELS: Readonly<Record<string, Model>> = {
  "demo-chat": demoModel,
  "demo-reasoner": demoModel,
  exact: () => ({ reasoning: REASONING, text: TEXT }),
  parallel: ({ messages }) => (messages.at(-1)!["role"] === "tool" ? { text: AFTER_CALLS } : { reasoning: REASONING, calls: CALLS }),
  endless: () => ({ text: BEFORE_BAD_ENDING, ending: "open" }),
  silent: () => undefined,
  broken: () => ({ status: 500 }),
  "error-event": () => ({ text: BEFORE_BAD_ENDING, ending: "error" }),
  cut: () => ({ text: BEFORE_BAD_ENDING, ending: "cut" }),
  unfinished: () => ({ text: BEFORE_BAD_ENDING, ending: "eof" }),
};

/** The models whose streams begin well and end badly, each in its way. */
export const BAD_ENDINGS = ["error-event", "cut", "unfinished"] as const;
export const BEFORE_BAD_ENDING = "Half of";

/** The models that every client holds a conversation with. */
export const TALKERS = ["demo-chat", "exact"] as const;

export interface Lab extends RunningGateway {
  /** What a client is configured with. */
  readonly baseURL: string;
  readonly provider: Provider;
}

export async function startLab(t: TestContext, over: object = {}, deps: GatewayDeps = {}): Promise<Lab> {
  const provider = await startProvider(t, BEHAVIOURS);
  // Timeouts far beyond any wait of the tests: a connection that is closed was closed because the client left.
  const timeouts = { first_token_ms: 60_000, idle_ms: 60_000, total_ms: 60_000 };
  const scripted = configFor(provider.url, Object.keys(BEHAVIOURS), { aliases: demoConfig.aliases, retry: { max_retries: 0 }, timeouts });
  const base = merge(demo(), scripted) as { keys: object[] };
  const keys = [...base.keys, { account: "acme", key: RESTRICTED_KEY, models: ["demo-chat"] }];
  const gateway = await startGateway(t, merge({ ...base, keys }, over) as object, deps);
  return { ...gateway, baseURL: `${gateway.url}/v1`, provider };
}

/**
 * A lab that admits one request a minute, and has admitted it; half a second of that minute is left. By the limiter's clock
 * the minute is over once somebody was refused, so the client that comes back gets its answer.
 */
export async function startFullLab(t: TestContext): Promise<Lab> {
  let admitted = false;
  const refused = () => lab.access.some(({ status }) => status === 429);
  const lab: Lab = await startLab(t, { limits: { rpm: 1 } }, { monotonic: () => (!admitted ? 0 : refused() ? 60_000 : 59_500) });
  const first = await lab.chat({ model: "demo-chat", messages: [{ role: "user", content: "first" }] });
  assert.equal(first.status, 200);
  await first.text();
  admitted = true;
  return lab;
}

/** The access log's statuses, once as many as expected are there. */
export async function statuses(lab: Lab, count: number): Promise<unknown[]> {
  await waitFor(() => lab.access.length >= count, `${count} lines of the access log`);
  return lab.access.map(({ status }) => status);
}

/** The client of `model` has gone: the provider's connection is closed and the log says 499. */
export async function assertLeft({ provider, access }: Lab, model: "endless" | "silent" = "endless"): Promise<void> {
  await waitFor(() => provider.asked.find(({ body }) => body["model"] === model)?.closed(), "the provider's connection to be closed after the client left");
  const line = await waitFor(() => access.find((record) => record["model"] === model), "the access log line of the request that the client left");
  assert.equal(line["status"], 499);
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

export { KEY };
