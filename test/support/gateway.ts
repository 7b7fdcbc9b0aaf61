// Starts the real gateway on a real port, in this process, and talks to it.

import assert from "node:assert/strict";
// The gateway writes its log lines at the end of a turn of the event loop. So one turn after an
// answer, its lines are written.
import { setImmediate as turn } from "node:timers/promises";
import demoConfig from "../../src/extensions/providers/demo/demo.json" with { type: "json" };
import { isObject } from "../../scripts/conformance/shapes.ts";
import type { Observe } from "../../src/core/extension/installer.ts";
import { allExtensions, checkConfig, createGateway, type GatewayDeps } from "./config.ts";
import type { ProcessReport } from "../../src/extensions/scale/installation/process-report.ts";
import { chunkShape } from "./shapes.ts";
import { folder } from "./folder.ts";
import { startProvider, type Behaviour } from "./provider.ts";
import type { Scope } from "./scope.ts";
import { waitFor } from "./wait.ts";

export const KEY = "sk-test-client-key";

/** UPSTREAM_CLIENT=fetch runs the suite with Node's fetch, and skips tests that need the pool. */
const upstream =
  process.env["UPSTREAM_CLIENT"] === undefined ? {} : { client: process.env["UPSTREAM_CLIENT"] };
const builtIn = process.env["UPSTREAM_CLIENT"] === "fetch";
export const POOLED_ONLY = {
  skip:
    builtIn &&
    "the built-in fetch has no connect deadline, no second try on a fresh connection, and headers of its own",
};

/** Merges two configurations: objects are merged, everything else is replaced. */
export function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const keys = new Set([...Object.keys(base), ...Object.keys(over)]);
  return Object.fromEntries([...keys].map((key) => [key, merge(base[key], over[key])]));
}

/** Deadlines longer than any test waits: whatever happens in a test did not wait for these. */
const NEVER = {
  connect_ms: 600_000,
  first_token_ms: 600_000,
  idle_ms: 600_000,
  total_ms: 1_200_000,
};

/** A configuration with one provider at `url`, which uses the same model names as the gateway. */
export function configFor(url: string, models: readonly string[], over: object = {}): object {
  const base = {
    server: { port: 0 },
    admin: { port: 0 },
    upstream,
    providers: {
      lab: {
        dialect: "openai",
        base_url: url,
        api_key: "sk-provider-secret",
        thinking: "thinking",
      },
    },
    models: Object.fromEntries(models.map((name) => [name, { provider: "lab", reasoning: true }])),
    aliases: {},
    keys: [{ account: "acme", key: KEY }],
    limits: { rpm: null },
    retry: { max_retries: 0 },
    breaker: { failures: 1_000 },
    timeouts: NEVER,
  };
  return merge(base, over) as object;
}

/** The demo configuration without pauses between tokens. */
export const demo = (over: object = {}): object =>
  merge(
    merge(demoConfig, {
      server: { port: 0 },
      admin: { port: 0 },
      upstream,
      providers: { demo: { pace_ms: 0 } },
      limits: { rpm: null },
    }),
    over,
  ) as object;

/** The part of a Response that most tests look at. */
export interface ChatAnswer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
  json(): Promise<unknown>;
}

export type RunningGateway = Awaited<ReturnType<typeof startGateway>>;

/** All extensions, and one that observes requests with `observe`. */
export const observedBy = (observe: Observe): GatewayDeps => ({
  extensions: [
    ...allExtensions,
    { name: "witness", install: (gateway) => gateway.observe(() => observe) },
  ],
});

export async function startGateway(
  t: Scope,
  config: object,
  deps: GatewayDeps = {},
  env: Record<string, string> = {},
) {
  const access: Record<string, unknown>[] = [];
  const diagnostics: Record<string, unknown>[] = [];
  const into = (list: Record<string, unknown>[]) => (lines: string) => {
    list.push(
      ...lines
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    );
  };
  const whole = "data_dir" in config ? config : { ...config, data_dir: folder() };
  const logs = { accessLog: into(access), diagnostics: into(diagnostics) };
  const gateway = createGateway(checkConfig(whole, env), { ...logs, ...deps });
  const url = await gateway.listen();
  t.after(() => gateway.close(0));
  return {
    url,
    gateway,
    access,
    diagnostics,
    /** Waits for the access log's line of a request, which is written when the response closes. */
    accessOf: (id: string) =>
      waitFor(
        () => access.find((record) => record["request_id"] === id),
        `the access log line of ${id}`,
      ),
    /** The state of a model's breaker, and the number of failures that it has counted. */
    breakerOf(name: string): readonly [state: string, failures: number] {
      const { models } = gateway.report().extensions["installation"] as ProcessReport;
      const { state, failures } = models.find(({ model }) => model === name)!.breaker;
      return [state, failures];
    },
    /** POST /v1/chat/completions. A string is sent as it is. `signal` makes the client leave. */
    async chat(body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        signal: signal ?? null,
        headers: { "content-type": "application/json", authorization: `Bearer ${KEY}`, ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      await turn();
      return response;
    },
  };
}

/** The parsed body of a response. */
export const json = (response: { json(): Promise<unknown> }): Promise<any> => response.json();

export const user = (content: string) => [{ role: "user", content }];

export interface Chunk {
  id: string;
  object: string;
  created: number;
  model: string;
  system_fingerprint: string;
  choices: {
    index: number;
    delta: Record<string, any>;
    logprobs: any;
    finish_reason: string | null;
  }[];
  usage?: any;
}

export interface StreamRead {
  readonly chunks: Chunk[];
  readonly done: boolean;
  readonly error: { message: string; type: string; code: string; request_id: string } | undefined;
  readonly comments: number;
  readonly text: string;
}

/** Reads a stream. Throws unless it has only chunks, an error, [DONE] and keep-alive comments. */
export async function readStream(response: Pick<ChatAnswer, "text">): Promise<StreamRead> {
  const text = await response.text();
  await turn();
  return parseStream(text);
}

/** Parses the text of a stream, as readStream() does. */
export function parseStream(text: string): StreamRead {
  const last = JSON.stringify(text.slice(-80));
  if (!text.endsWith("\n\n")) throw new Error(`a stream must end with a blank line: ${last}`);
  const chunks: Chunk[] = [];
  let done = false;
  let error: StreamRead["error"];
  let comments = 0;
  for (const block of text.slice(0, -2).split("\n\n")) {
    if (done || error) throw new Error(`something follows the end of the stream: ${block}`);
    const event = block === ": keep-alive" ? "comment" : eventOf(block);
    if (event === "comment") comments += 1;
    else if (event === "end") done = true;
    else if ("error" in event) error = event.error;
    else chunks.push(event);
  }
  return { chunks, done, error, comments, text };
}

/** One event of a stream. */
function eventOf(block: string): Chunk | { error: NonNullable<StreamRead["error"]> } | "end" {
  if (block === "data: [DONE]") return "end";
  if (block.startsWith("data: {") && !block.includes("\n")) return JSON.parse(block.slice(6));
  throw new Error(`not an event of ours: ${JSON.stringify(block)}`);
}

/**
 * Asserts that all chunks have the shape of the contract and the same id, object, created and
 * model, that the first one alone has the role, and that there is one finish_reason, or none if
 * `finished` is false.
 */
export function assertSound(chunks: readonly Chunk[], model: string, { finished = true } = {}) {
  const first = chunks[0]!;
  assert.match(first.id, /^chatcmpl-[0-9a-f]{32}$/);
  assert.equal(first.model, model);
  chunks.forEach((each, index) => {
    chunkShape(each);
    assert.deepEqual(
      [each.id, each.object, each.created, each.model],
      [first.id, "chat.completion.chunk", first.created, first.model],
    );
    for (const { index: choice, delta } of each.choices) {
      assert.equal(choice, 0);
      assert.equal("role" in delta, index === 0);
      assert.ok(!(delta["content"] && delta["reasoning_content"]), "never both texts in one delta");
    }
  });
  assert.equal(
    chunks.flatMap(({ choices }) => choices).filter(({ finish_reason }) => finish_reason !== null)
      .length,
    finished ? 1 : 0,
  );
}

const TEXTS = ["role", "content", "reasoning_content", "refusal"] as const;

/** Appends the texts of a delta. Null remains until there is a text. */
function addTexts(message: Record<string, any>, delta: Record<string, any>): void {
  for (const field of TEXTS) {
    if (typeof delta[field] === "string") message[field] = (message[field] ?? "") + delta[field];
    else if (delta[field] === null) message[field] ??= null;
  }
}

/** Adds fragments of calls. The first one of a call has its id and name, the others arguments. */
function addCalls(calls: any[], fragments: readonly any[] = []): void {
  for (const { index, id, type, function: given } of fragments) {
    if (id) calls[index] = { id, type, function: { ...given } };
    else calls[index].function.arguments += given.arguments;
  }
}

/** The message that a client gets by concatenating the deltas. */
export function assemble(chunks: readonly Chunk[]) {
  const message: Record<string, any> = {};
  const calls: any[] = [];
  let finish: string | null = null;
  const logprobs: any[] = [];
  for (const choice of chunks.flatMap(({ choices }) => choices)) {
    addTexts(message, choice.delta);
    addCalls(calls, choice.delta["tool_calls"]);
    logprobs.push(...(choice.logprobs?.content ?? []));
    if (finish !== null && choice.finish_reason !== null)
      throw new Error("finish_reason came twice");
    finish ??= choice.finish_reason;
  }
  if (calls.length > 0) message["tool_calls"] = calls;
  return { message, finish_reason: finish, logprobs };
}

/** Starts a provider with these behaviours, and a gateway with a model for each of them. */
export async function startWith(
  t: Scope,
  behaviours: Readonly<Record<string, Behaviour>>,
  over: object = {},
  deps: GatewayDeps = {},
) {
  const provider = await startProvider(t, behaviours);
  const config = configFor(provider.url, Object.keys(behaviours), over);
  return { provider, config, ...(await startGateway(t, config, deps)) };
}
