// Providers with several keys: each request takes one of them, and another one if that is refused
// or exhausted.
import { configMoments, type ConfigExtension } from "../../../config/extension.ts";
import { integer, positive, strict } from "../../../config/fields.ts";
import { invalid } from "../../../config/references.ts";
import { defineSetting, type CheckContext } from "../../../config/setting.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import { moments } from "../../../core/extension/places.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { attempt as plainAttempt, type Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import { keyHeaders, type Model } from "../../../core/routing/model.ts";
import {
  array,
  optional,
  withDefault,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { createKeyPool, type KeyPool, type PoolKey } from "./pool.ts";

/** A key that was refused rests for so long: nobody mends it sooner. */
const REFUSED_MS = 60_000;
/** A key that is exhausted, at a provider that does not say until when. */
const EXHAUSTED_MS = 5_000;
const MAX_PER_MINUTE = 1_000_000_000;

const keyCheck = ({ credential }: CheckContext) =>
  strict({
    key: credential,
    weight: withDefault(positive, 1),
    rpm: optional(integer(1, MAX_PER_MINUTE)),
    tpm: optional(integer(1, MAX_PER_MINUTE)),
  });

const apiKeys = defineSetting<readonly PoolKey[] | undefined>(
  "providers.*.api_keys",
  undefined,
  (context) => optional(array(keyCheck(context), { min: 1 })),
);

export const extension: ConfigExtension = {
  name: "key-pool",
  settings: [apiKeys],
  install(gateway) {
    gateway.around(({ clock, current, on }) => {
      const pools = createPools(clock);
      on("report", () => pools.status(current().config));
      return withPools(pools.of, () => current().config);
    });
    gateway.on(configMoments.issues, issuesIn);
    gateway.on(moments.secrets, ({ providers }) =>
      [...providers.values()].flatMap((row) => (apiKeys.of(row) ?? []).map(({ key }) => key)),
    );
    gateway.on(moments.status, (reports) => ({ provider_keys: longestRests(reports) }));
  },
};

/** The pools of a process, by the rows of their providers. A reload begins with new ones. */
function createPools(clock: Clock) {
  const byRow = new WeakMap<object, KeyPool>();

  /** Undefined: the provider has one key, or none. */
  function of(row: object): KeyPool | undefined {
    const keys = apiKeys.of(row);
    if (!keys) return undefined;
    const pool = byRow.get(row) ?? createKeyPool(keys, clock);
    byRow.set(row, pool);
    return pool;
  }
  return {
    of,
    status: ({ providers }: Config) =>
      Object.fromEntries(
        [...providers].flatMap(([name, row]) => {
          const pool = of(row);
          return pool ? [[name, pool.status()]] : [];
        }),
      ),
  };
}

const withPools =
  (poolOf: (row: object) => KeyPool | undefined, config: () => Config) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { providers } = config();
    const pools = candidates.map(({ provider }) => poolOf(providers.get(provider.name) ?? {}));
    if (pools.every((pool) => pool === undefined))
      return complete(chat, candidates, deliver, context);
    const { attempt = plainAttempt } = context;
    return complete(chat, candidates, deliver, {
      ...context,
      attempt(attemptChat, serving, take, options) {
        const pool = poolOf(providers.get(serving.model.provider.name) ?? {});
        if (!pool) return attempt(attemptChat, serving, take, options);
        let begun = false;
        function takeNoted(parts: Parameters<typeof take>[0]): ReturnType<typeof take> {
          begun = true;
          return take(parts);
        }
        const once = (own: Serving) => attempt(attemptChat, own, takeNoted, options);
        return withKeys(pool, serving, once, () => begun);
      },
    });
  };

/** Makes an attempt with each key in turn, until one is neither refused nor exhausted. */
async function withKeys(
  pool: KeyPool,
  serving: Serving,
  attempt: (serving: Serving) => Promise<void>,
  hasBegun: () => boolean,
): Promise<void> {
  const tried = new Set<string>();
  let taken = pool.take(tried);
  if (typeof taken === "number")
    throw new ProviderError("model_overloaded", "no key of the provider has room", {
      retryAfterMs: taken,
    });
  for (;;) {
    tried.add(taken.key);
    serving.usesKey?.(taken.end);
    try {
      await attempt({ ...serving, model: withKey(serving.model, taken.key) });
      const { prompt_tokens, completion_tokens } = serving.meter.usage().usage;
      taken.used(prompt_tokens + completion_tokens);
      return;
    } catch (error) {
      const rest = restAfter(error);
      if (rest !== undefined) taken.rest(rest);
      if (rest === undefined || hasBegun()) throw error;
      const next = pool.take(tried);
      // The last key's failure is that of the attempt.
      if (typeof next === "number") throw error;
      serving.resent?.(error as ProviderError);
      taken = next;
    }
  }
}

/** Milliseconds for which an error takes its key out of use. Undefined: the key is not to blame. */
function restAfter(error: unknown): number | undefined {
  if (!(error instanceof ProviderError)) return undefined;
  const { operator, retryAfterMs, status } = error.detail;
  if (operator === "key") return REFUSED_MS;
  return status === 429 ? (retryAfterMs ?? EXHAUSTED_MS) : undefined;
}

/** The same model, asked with this key. */
const withKey = (model: Model, key: string): Model => {
  const { provider, traits } = model;
  const headers = { ...provider.headers, ...keyHeaders(traits.auth, key) };
  return { ...model, provider: { ...provider, headers } };
};

/** Of what several processes report, the longest rest of each key. */
function longestRests(reports: readonly unknown[]): object {
  const all: Record<string, Record<string, number>> = {};
  for (const [provider, keys] of reports.flatMap((report) => Object.entries(asObject(report))))
    for (const { key, resting_ms } of keys as ReturnType<KeyPool["status"]>) {
      const longest = Math.max(all[provider]?.[key] ?? 0, resting_ms);
      all[provider] = { ...all[provider], [key]: longest };
    }
  return all;
}

/** Providers that have both one key and several. */
const issuesIn = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const { api_key, api_keys } = asObject(written);
    if ((api_key ?? null) === null || (api_keys ?? null) === null) return [];
    return [invalid(["providers", name, "api_keys"], "cannot stand beside api_key")];
  });
