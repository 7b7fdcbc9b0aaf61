// A gateway with two providers: the test sets the first one's behaviour, the second one is healthy.
// And what a client of the gateway gets.

import assert from "node:assert/strict";
import type { Clock } from "../../../src/core/clock.ts";
import {
  assemble,
  configFor,
  json,
  merge,
  readStream,
  startGateway,
  user,
  type ChatAnswer,
  type RunningGateway,
} from "../../support/gateway.ts";
import {
  speak,
  startProvider,
  status,
  type Behaviour,
  type Provider,
} from "../../support/provider.ts";
import type { Scope } from "../../support/scope.ts";
import { within } from "../../support/wait.ts";

const JSON_TYPE = { "content-type": "application/json" };

/** An error in a provider's format. */
export const failure = (message: string, more: object = {}) => ({ error: { message, ...more } });

/** An error response with Retry-After. */
export const refusing = (code: number, retryAfter: string): Behaviour =>
  status(code, {}, { ...JSON_TYPE, "retry-after": retryAfter });

/**
 * Model a is at the first URL, b and c at the second; x is [a, b]. Deadlines are the tests' own, so
 * that a healthy provider has enough time on a busy machine.
 */
const settingsOf = (first: string, second: string, over: object): object =>
  merge(
    configFor(first, ["a"], {
      providers: { other: { dialect: "openai", base_url: second } },
      models: {
        a: { context_tokens: 1_000 },
        b: { provider: "other", context_tokens: 9_000 },
        c: { provider: "other", context_tokens: 500 },
      },
      aliases: { x: { models: ["a", "b"] } },
      retry: { max_retries: 1, backoff_ms: 1, max_wait_ms: 100 },
    }),
    over,
  ) as object;
const WELL = { b: speak("Rescued."), c: speak("Also well.") };

/** What the tests of a fault work with. */
export interface Bench {
  readonly gateway: RunningGateway;
  readonly first: Provider;
  readonly second: Provider;
}

/** Model a is at a provider with this behaviour. */
export async function bench(
  t: Scope,
  behaviour: Behaviour,
  over: object = {},
  time: Partial<Clock> = {},
) {
  const first = await startProvider(t, { a: behaviour });
  const second = await startProvider(t, WELL);
  const settings = settingsOf(first.url, second.url, over);
  return { gateway: await startGateway(t, settings, time), first, second };
}

/** The `param` of error codes that are not about the model. */
const PARAMS: Readonly<Record<string, string | null>> = {
  context_length_exceeded: "messages",
  content_filter: "messages",
  upstream_rejected: null,
};

/** Asserts that an error, before or inside a stream, reveals nothing of the provider. */
function assertDiscreet(error: { request_id: string }, { headers }: ChatAnswer): void {
  assert.equal(error.request_id, headers.get("x-request-id"));
  assert.ok(!/sk-provider|127\.0\.0\.1|10\.0\.0\.1|\blab\b|\bother\b/.test(JSON.stringify(error)));
}

/** Asserts that an error response is well-formed. Returns its code. */
async function codeOf(response: ChatAnswer): Promise<string> {
  const { error } = await json(response);
  const isClients = error.code in PARAMS;
  assert.deepEqual(
    [response.status, error.type, error.param],
    isClients
      ? [400, "invalid_request_error", PARAMS[error.code]]
      : [503, "service_unavailable_error", "model"],
  );
  assertDiscreet(error, response);
  const retryAfter = response.headers.get("retry-after");
  if (error.code === "model_overloaded")
    assert.ok(error.message.includes(`Retry after ${retryAfter} seconds`), error.message);
  return error.code;
}

/**
 * What a client gets. Checks on the way what holds for every answer. `got`: "ok", the model that
 * served where the alias x was asked for, an error's code, or "in-band" and the code of an error
 * inside a stream.
 */
export async function outcome(gateway: RunningGateway, model: string, streaming = false) {
  const response = await within(
    gateway.chat({ model, stream: streaming, messages: user("hi") }),
    "the answer",
  );
  const seen = {
    retryAfter: response.headers.get("retry-after"),
    requestId: response.headers.get("x-request-id"),
  };
  const nameOf = (name: string) => (model === "x" ? name : "ok");
  if (response.status !== 200) return { got: await codeOf(response), ...seen };
  if (!streaming) {
    const reply = await json(response);
    if (model !== "x") assert.equal(reply.model, model);
    assert.equal(reply.choices[0].message.content, reply.model === "b" ? "Rescued." : "Fine.");
    return { got: nameOf(reply.model), ...seen };
  }
  const { chunks, done, error } = await within(readStream(response), "the end of the stream");
  const [served, ...others] = new Set(chunks.map((each) => each.model));
  assert.deepEqual(others, [], "one model in every chunk");
  if (model !== "x") assert.equal(served, model, "a named model answers under its name");
  const { message, finish_reason } = assemble(chunks);
  const isWhole = error === undefined;
  assert.deepEqual([done, finish_reason !== null], [isWhole, isWhole], "both, or an error");
  const text = message["content"];
  const isOne = served === "b" ? text === "Rescued." : ["Fine.", "Once"].includes(text);
  assert.ok(isOne, `never two answers in one: ${text}`);
  if (!error) return { got: nameOf(chunks[0]!.model), ...seen };
  assert.equal(error.type, "service_unavailable_error");
  assertDiscreet(error, response);
  return { got: `in-band ${error.code}`, ...seen };
}

/**
 * "m" is of this vendor, and its provider has this behaviour; "both" is an alias for it and then
 * "next", which is healthy.
 */
export async function vendorBench(
  t: Scope,
  vendor: string,
  behaviour: Behaviour,
  {
    time = {},
    ...over
  }: { readonly time?: Partial<Clock>; readonly [setting: string]: unknown } = {},
) {
  const provider = await startProvider(t, behaviour);
  const other = await startProvider(t, { next: speak("Rescued.") });
  const config = configFor(other.url, ["next"], {
    providers: { shop: { vendor, base_url: provider.url } },
    models: { m: { provider: "shop" } },
    aliases: { both: { models: ["m", "next"] } },
    breaker: { failures: 2, cooldown_ms: 10_000 },
  });
  const gateway = await startGateway(t, merge(config, over) as object, time);
  /** Returns the status, and the model that served or the code of the error. */
  async function ask(model: string, content = "hi", streaming = false): Promise<string> {
    const response = await gateway.chat({ model, stream: streaming, messages: user(content) });
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const { chunks, error } = await readStream(response);
      return `${response.status} ${error?.code ?? chunks[0]!.model}`;
    }
    const body = await json(response);
    return `${response.status} ${body.error?.code ?? body.model}`;
  }
  const breaker = () => gateway.breakerOf("m");
  return { gateway, asked: provider.asked, others: other.asked, ask, breaker };
}
