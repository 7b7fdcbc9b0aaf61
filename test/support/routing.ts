// Catalogs of models whose provider gives scripted answers, for tests of routing without a network.
import { createCatalog } from "../../src/core/routing/catalog.ts";
import {
  withOverrides,
  type ModelSettings,
  type RoutingSettings,
} from "../../src/core/routing/model.ts";
import type { TraitOverrides } from "../../src/core/providers/traits.ts";
import { chatRequest, type ChatRequest } from "../../src/core/openai/request.ts";
import { openaiDialectDefinition } from "../../src/core/providers/openai/index.ts";
import { createBreaker } from "../../src/extensions/routing/breaker/index.ts";
import { sharedPauses } from "../../src/extensions/routing/pauses/index.ts";
import { capable } from "../../src/extensions/routing/capabilities/index.ts";
import { VENDORS } from "./config.ts";
import type { UpstreamResponse, UpstreamRequest } from "../../src/core/upstream/transport.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { Breaker } from "../../src/core/routing/breaker.ts";
import { createFakeClock } from "./fake-clock.ts";

/** One answer of a provider. */
export type Answer = (request: UpstreamRequest) => Promise<UpstreamResponse>;
type Headers = Readonly<Record<string, string>>;

/** Waits for one turn of the event loop, in which everything that is ready runs. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function* bytesOf(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}

const response = (status: number, body: UpstreamResponse["body"], headers: Headers) => ({
  status,
  headers: { get: (name: string) => headers[name] ?? null },
  body,
});

/** Gives a whole reply with this text. */
export const reply =
  (text: string): Answer =>
  async ({ sent }) => {
    sent();
    const message = { role: "assistant", content: text };
    const usage = { prompt_tokens: 7, completion_tokens: 3 };
    const json = { choices: [{ message, finish_reason: "stop" }], usage };
    return response(200, bytesOf(JSON.stringify(json)), { "content-type": "application/json" });
  };

/** Gives an answer other than 200, with an error of this code. */
export const refuse =
  (status: number, code: string | null = null, headers: Headers = {}): Answer =>
  async ({ sent }) => {
    sent();
    const error = { message: "no", code };
    return response(status, bytesOf(JSON.stringify({ error })), headers);
  };

/** Fails as a connection does, with this code. */
export const breakOff =
  (code: string): Answer =>
  async () => {
    throw Object.assign(new Error("the network failed"), { code });
  };

/** Gives no answer. Rejects when the attempt is cancelled. */
export const silence: Answer = ({ sent, cancel }) => {
  sent();
  return new Promise((_, reject) => {
    cancel.onAbort(() => reject(cancel.reason as Error));
  });
};

export type Lab = ReturnType<typeof lab>;

export const TIMEOUTS = {
  connect_ms: 5_000,
  first_token_ms: 60_000,
  idle_ms: 30_000,
  total_ms: 900_000,
  closing_ms: 2_000,
  leave_ms: 1_000,
};

/** The traits of a compatible server without any extras. */
const GENERIC = VENDORS.get("generic")!.traits;

/** The settings that differ from a model with GENERIC traits. */
export type TestModel = Partial<ModelSettings> &
  TraitOverrides & { readonly reasoning_score?: number; readonly quality_score?: number };

/** The settings of one provider `lab` with these models. */
export const settingsFor = (
  models: Readonly<Record<string, TestModel>>,
  over: Partial<RoutingSettings> = {},
): RoutingSettings => ({
  providers: new Map([
    ["lab", { vendor: "generic", dialect: "openai", base_url: "http://lab/v1" }],
  ]),
  models: new Map(
    Object.entries(models).map(([name, settings]) => [
      name,
      { provider: "lab", reasoning: false, traits: withOverrides(GENERIC, settings), ...settings },
    ]),
  ),
  aliases: new Map(),
  timeouts: TIMEOUTS,
  retry: { max_retries: 1, backoff_ms: 250, max_wait_ms: 3_000 },
  breaker: { failures: 5, cooldown_ms: 15_000 },
  server: { max_reply_bytes: 1_000_000 },
  currency: "USD",
  ...over,
});

/** Creates the breakers of models, as in a single process. */
export function breakersBy(clock: Clock): (model: string) => Breaker {
  const restOf = sharedPauses({ clock, on: () => undefined }, "breaker");
  return (model) => createBreaker(clock, restOf(model));
}

/** The catalog of these settings. Every request goes to `transport`. */
export const catalogOf = (
  settings: RoutingSettings,
  clock = createFakeClock(),
  transport: Answer = silence,
) =>
  createCatalog(settings, {
    dialects: new Map([["openai", openaiDialectDefinition]]),
    transport: (_url, request) => transport(request),
    reach: (_destination, transport) => transport,
    redact: (text) => text,
    jsonExcess: undefined,
    mediaTokens: undefined,
    capable: (models, chat) => capable(models, chat),
    createBreaker: breakersBy(clock),
    breakers: new Map(),
    fingerprint: () => "fp_test",
  });

/** Models that give these answers, one for each request. A further request fails the test. */
export function lab(
  scripts: Readonly<Record<string, readonly Answer[]>>,
  over: Partial<RoutingSettings> = {},
  models: Readonly<Record<string, TestModel>> = {},
) {
  const clock = createFakeClock();
  /** The names of the models that were asked, in the order of the requests. */
  const asked: string[] = [];
  const left = new Map(Object.entries(scripts).map(([name, answers]) => [name, [...answers]]));
  const named = Object.keys(scripts).map((name) => [name, models[name] ?? {}]);
  const catalog = catalogOf(settingsFor(Object.fromEntries(named), over), clock, (request) => {
    const { model } = JSON.parse(request.body) as { model: string };
    asked.push(model);
    const answer = left.get(model)?.shift();
    if (!answer) throw new TypeError(`the script of ${model} is over`);
    return answer(request);
  });
  // The models are in the order of `scripts`.
  return { clock, asked, models: [...catalog.models.values()] };
}

/** A checked request. */
export const chatOf = (over: object = {}): ChatRequest =>
  chatRequest({ model: "auto/test", messages: [{ role: "user", content: "hi" }], ...over });
