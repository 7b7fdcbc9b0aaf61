// Providers with several keys: each request takes one of them. If the provider refuses that key, or
// it is exhausted, the request takes another one.
import { configHooks } from "../../../config/extension.ts";
import { integer, positive, strict } from "../../../config/fields.ts";
import { invalid, repeatedIn } from "../../../config/references.ts";
import { defineSetting, type CheckContext } from "../../../config/setting.ts";
import type { Config } from "../../../core/config.ts";
import type { GatewayContext, Installer } from "../../../core/extension/installer.ts";
import { hooks } from "../../../core/extension/places.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import { keyHeaders, type Model, type RoutingSettings } from "../../../core/routing/model.ts";
import {
  array,
  optional,
  withDefault,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asArray, asObject } from "../../../core/schema/untrusted-json.ts";
import { gatesFor, serveGates } from "../../routing/gates/index.ts";
import { sharedPauses } from "../../routing/pauses/index.ts";
import { once } from "../../scale/installation/index.ts";
import { createKeyPool, endOf, type KeyPool, type TakenKey } from "./pool.ts";

/** The pause of an exhausted key, if the provider does not state one. */
const EXHAUSTED_MS = 5_000;
/**
 * Statuses of refusals that may concern only the requested model: permissions of OpenAI's and
 * Groq's projects, regions at OpenRouter, and the end of Volcano's free trial of a model.
 */
const MAY_CONCERN_MODEL: ReadonlySet<number | undefined> = new Set([403, 429]);
const MAX_PER_MINUTE = 1_000_000_000;

const keyCheck = ({ credential }: CheckContext) =>
  strict({
    key: credential,
    weight: withDefault(positive, 1),
    rpm: optional(integer(1, MAX_PER_MINUTE)),
    tpm: optional(integer(1, MAX_PER_MINUTE)),
  });

const apiKeys = defineSetting("providers.*.api_keys", undefined, (context) =>
  array(keyCheck(context), { min: 1 }),
);

/** Distinguishes the gates and pauses of keys from those of other extensions. */
const SUBJECT = "key-pool";

export const settings = [apiKeys];

export function install(gateway: Installer): void {
  gateway.around((context) => {
    const poolOf = createPools(context);
    context.on("report", () => pausesIn(context.current().config, poolOf));
    return withPools(poolOf);
  });
  gateway.on(once, (host) => serveGates(SUBJECT, host));
  gateway.on(configHooks.issues, issuesIn);
  gateway.on(configHooks.keyed, (model, { providers }) =>
    (apiKeys.of(providers.get(model.provider.name)) ?? []).map(({ key }) => ({
      key: endOf(key),
      model: withKey(model, key),
    })),
  );
  gateway.on(hooks.secrets, ({ providers }) =>
    [...providers.values()].flatMap((row) => (apiKeys.of(row) ?? []).map(({ key }) => key)),
  );
  gateway.on(hooks.status, (reports) => ({ provider_keys: longestPauses(reports) }));
}

/** By the name of a provider, and then by the end of a key: its pause in milliseconds. */
type Pauses = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Finds the pool of a provider. Undefined: its row has no `api_keys`. */
type PoolOf = (config: RoutingSettings, provider: string) => KeyPool | undefined;

/** The pools of a process. Each lives as long as its provider's settings are active. */
function createPools(context: GatewayContext): PoolOf {
  const services = {
    gates: gatesFor(context, SUBJECT),
    pauseOf: sharedPauses(context, SUBJECT),
  };
  const byRow = new WeakMap<object, KeyPool>();
  return ({ providers }, name) => {
    const row = providers.get(name);
    const keys = apiKeys.of(row);
    if (!row || !keys) return undefined;
    const pool = byRow.get(row) ?? createKeyPool(name, keys, services);
    byRow.set(row, pool);
    return pool;
  };
}

const withPools =
  (poolOf: PoolOf) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { attempt, config } = context;
    if (candidates.every(({ provider }) => poolOf(config, provider.name) === undefined))
      return complete(chat, candidates, deliver, context);
    return complete(chat, candidates, deliver, {
      ...context,
      attempt(attemptChat, serving, take, options) {
        const pool = poolOf(config, serving.model.provider.name);
        if (!pool) return attempt(attemptChat, serving, take, options);
        let begun = false;
        function takeParts(parts: Parameters<typeof take>[0]): ReturnType<typeof take> {
          begun = true;
          return take(parts);
        }
        return withKeys(
          pool,
          serving,
          (keyed) => attempt(attemptChat, keyed, takeParts, options),
          () => begun,
        );
      },
    });
  };

/** Makes an attempt with each key in turn, until one is neither refused nor exhausted. */
async function withKeys(
  pool: KeyPool,
  serving: Serving,
  attempt: (serving: Serving) => Promise<unknown>,
  hasBegun: () => boolean,
): Promise<void> {
  const { model, meter } = serving;
  const tried = new Set<string>();

  /**
   * Returns the error that the key caused. Undefined: the attempt succeeded. Throws other errors.
   */
  async function tryWith(taken: TakenKey): Promise<ProviderError | undefined> {
    tried.add(taken.key);
    serving.usesKey?.(taken.end);
    const error = await attempt({ ...serving, model: withKey(model, taken.key) }).then(
      () => undefined,
      (failed: unknown) => failed,
    );
    const { prompt_tokens, completion_tokens } = meter.usage().usage;
    const isFailure = error instanceof ProviderError;
    const isAsked = isFailure ? error.answer : error === undefined || meter.hasPrompt;
    if (isAsked) taken.used(prompt_tokens + completion_tokens);
    else taken.unused();
    if (error === undefined) return undefined;
    if (!isFailure || !isOfKey(error)) throw error;
    const { operator, status, retryAfterMs } = error.detail;
    if (operator === "key") taken.refused(MAY_CONCERN_MODEL.has(status));
    else taken.exhausted(retryAfterMs ?? EXHAUSTED_MS);
    // After content no other key is tried: its reply would repeat what was delivered or counted.
    if (!hasBegun() && completion_tokens === 0) return error;
    throw pool.hasOther(model.name, tried) ? brokenOff(error, hasBegun()) : error;
  }

  let failure: ProviderError | undefined;
  do {
    const taken = await pool.take(model.name, tried);
    if (typeof taken === "number") throw withoutKeys(failure, taken, pool.isRefused(model.name));
    if (failure) serving.resent?.(failure);
    failure = await tryWith(taken);
  } while (failure);
}

/** Whether the key caused the error. The content of a request must not disable a key. */
const isOfKey = ({ detail: { operator, status, fromContent } }: ProviderError): boolean =>
  !fromContent && (operator === "key" || status === 429);

/**
 * The error of a reply that broke off because its key failed, if the model has other keys. The
 * breaker counts it like any broken reply.
 */
function brokenOff(error: ProviderError, hasBegun: boolean): ProviderError {
  const { status = 200, providerMessage } = error.detail;
  const detail = { status, providerMessage, cause: error, fromContent: !hasBegun };
  const copy = new ProviderError("upstream_error", error.message, detail);
  return Object.assign(copy, { answer: error.answer, usage: error.usage });
}

/**
 * The error if no key can be used for `retryAfterMs`. `failure`: the error of the last key that the
 * request has tried. Undefined: it has tried none. `isRefused`: the provider refuses all keys.
 */
function withoutKeys(
  failure: ProviderError | undefined,
  retryAfterMs: number,
  isRefused: boolean,
): ProviderError {
  if (failure?.detail.operator === "key") return failure;
  // Earlier requests were refused. The model is down, as it is with one key that is refused.
  if (!failure && isRefused)
    return new ProviderError("model_unavailable", "the provider has refused every key", {
      operator: "key",
    });
  if (!failure)
    return new ProviderError("model_overloaded", "no key of the provider has room", {
      fromContent: true,
      retryAfterMs,
    });
  const { code, message, detail, answer } = failure;
  return Object.assign(new ProviderError(code, message, { ...detail, retryAfterMs }), { answer });
}

/** The model, called with this key. */
const withKey = (model: Model, key: string): Model => {
  const { provider, traits } = model;
  const headers = { ...provider.headers, ...keyHeaders(traits.auth, key) };
  return { ...model, provider: { ...provider, headers } };
};

/** How long the keys of each provider are paused, for any of its models. */
const pausesIn = (config: Config, poolOf: PoolOf): Pauses =>
  Object.fromEntries(
    [...config.providers.keys()].flatMap((name) => {
      const models = [...config.models].filter(([, { provider }]) => provider === name);
      const pool = poolOf(config, name);
      return pool ? [[name, pool.pauses(models.map(([model]) => model))]] : [];
    }),
  );

/** The longest pause of each key in any process. */
function longestPauses(reports: readonly unknown[]): Pauses {
  // Without a prototype: a provider may be called `__proto__` or `constructor`.
  const all: Record<string, Record<string, number>> = Object.create(null);
  for (const report of reports as readonly Pauses[])
    for (const [provider, keys] of Object.entries(report)) {
      const longest = all[provider] ?? {};
      all[provider] = longest;
      for (const [end, ms] of Object.entries(keys)) longest[end] = Math.max(longest[end] ?? 0, ms);
    }
  return all;
}

/** Providers with both `api_key` and `api_keys`, or with a repeated key. */
const issuesIn = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const { api_key, api_keys } = asObject(written);
    if ((api_keys ?? null) === null) return [];
    const path = ["providers", name, "api_keys"];
    if ((api_key ?? null) !== null) return [invalid(path, "cannot be used with api_key")];
    return repeatedIn(asArray(api_keys).map((row) => asObject(row)["key"])).map((at) =>
      invalid([...path, at, "key"], "is in the list twice"),
    );
  });
