// Limits of requests to providers and models. A request beyond a limit goes to the next candidate,
// or waits for a short time if there is none.
import type { Installer } from "../../../core/extension/installer.ts";
import { positive, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { hooks } from "../../../core/extension/places.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { RequestContext, Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model, RoutingSettings } from "../../../core/routing/model.ts";
import { boolean, optional, withDefault } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { msUntilReset } from "../../providers/provider-words/index.ts";
import { once } from "../../scale/installation/index.ts";
import {
  gatesFor,
  serveGates,
  type Ending,
  type Gate,
  type Gates,
  type Permit,
} from "../gates/index.ts";

const check = () =>
  optional(
    strict({
      rpm: optional(positive),
      tpm: optional(positive),
      max_in_flight: optional(positive),
      adaptive: withDefault(boolean(), false),
    }),
  );

const ofProviders = defineSetting("providers.*.limits", undefined, check);
const ofModels = defineSetting("models.*.limits", undefined, check);

/** Keeps these gates apart from those of other extensions. */
const SUBJECT = "provider-limits";

export const settings = [ofProviders, ofModels];

export function install(gateway: Installer): void {
  gateway.around((context) => {
    const gates = gatesFor(context, SUBJECT);
    context.on("report", gates.limits);
    return bounded(gates);
  });
  gateway.on(once, (host) => serveGates(SUBJECT, host));
  gateway.on(hooks.status, (reports, config) => ({ provider_limits: inForce(reports, config) }));
}

/** The reported limits of concurrent requests, less those that a reload has removed. */
function inForce(reports: readonly unknown[], { providers, models }: RoutingSettings): object {
  const isInForce = ([gate]: readonly [gate: string, limit: unknown]): boolean => {
    const name = gate.slice(gate.indexOf(" ") + 1);
    const bounds = gate.startsWith("model ")
      ? ofModels.of(models.get(name))
      : ofProviders.of(providers.get(name));
    return bounds?.max_in_flight !== undefined || bounds?.adaptive === true;
  };
  return Object.fromEntries(Object.entries(Object.assign({}, ...reports)).filter(isInForce));
}

/** The gates that a request to a model must pass. Empty: neither model nor provider has limits. */
function gatesOf(gates: Gates, model: Model, { providers, models }: RoutingSettings) {
  const { name, provider } = model;
  const passed: Gate[] = [];
  const ofModel = ofModels.of(models.get(name));
  const ofProvider = ofProviders.of(providers.get(provider.name));
  // The model's gate first: a request that waits there must not hold a permit of the provider.
  if (ofModel) passed.push(gates.of(`model ${name}`, ofModel));
  if (ofProvider) passed.push(gates.of(`provider ${provider.name}`, ofProvider));
  return passed;
}

const bounded =
  (all: Gates) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const { config, attempt } = context;
    if (candidates.every((model) => gatesOf(all, model, config).length === 0))
      return complete(chat, candidates, deliver, context);
    return complete(chat, candidates, deliver, {
      ...context,
      async attempt(attemptChat, serving, take, options) {
        const { model, others, meter } = serving;
        const gates = gatesOf(all, model, config);
        // Wait only for the last available candidate: another one may have room.
        const isLast = others.every(({ status }) => status().retryMs > 0);
        const waitMs = isLast ? model.provider.retry.max_wait_ms : 0;
        const permits = await passAll(gates, waitMs, options);
        let ending: Ending = "reply";
        try {
          await attempt(attemptChat, withPauses(serving, gates, options), take, options);
        } catch (error) {
          ending = endingOf(error);
          throw error;
        } finally {
          const { prompt_tokens, completion_tokens } = meter.usage().usage;
          for (const permit of permits) permit.release(prompt_tokens + completion_tokens, ending);
        }
      },
    });
  };

/** The ending of an attempt that failed with `error`. A too large request is not an overload. */
function endingOf(error: unknown): Ending {
  const isOfProvider = error instanceof ProviderError && error.countsForBreaker;
  return isOfProvider && error.code === "model_overloaded" ? "overload" : "other";
}

/**
 * Passes all gates or none. If one has no room in time, throws a ProviderError that the breaker
 * does not count. If the request was cancelled, throws the reason.
 */
async function passAll(
  gates: readonly Gate[],
  waitMs: number,
  { clock, account, cancel }: RequestContext,
): Promise<readonly Permit[]> {
  const endsAt = clock.monotonic() + waitMs;
  const permits: Permit[] = [];
  for (const gate of gates) {
    const left = endsAt - clock.monotonic();
    const entered = await gate.enter({ account, waitMs: left, cancel });
    if (typeof entered === "number") {
      for (const permit of permits) permit.undo();
      if (cancel.aborted) throw cancel.reason;
      throw new ProviderError("model_overloaded", "the limits of the configuration are reached", {
        fromContent: true,
        permanent: true,
        ...(entered < Infinity && { retryAfterMs: entered }),
      });
    }
    permits.push(entered);
  }
  return permits;
}

/**
 * Pauses adaptive gates when the headers of a reply say that the limit is used up until a stated
 * time. A provider with several keys is never paused: its headers are about one key only.
 */
function withPauses(
  serving: Serving,
  gates: readonly Gate[],
  { config, clock }: RequestContext,
): Serving {
  const { model } = serving;
  const { transport, name } = model.provider;
  const adaptive = gates.filter(({ bounds }) => bounds.adaptive);
  const hasOneKey = asObject(config.providers.get(name))["api_keys"] === undefined;
  if (adaptive.length === 0 || !hasOneKey) return serving;
  const provider: Model["provider"] = {
    ...model.provider,
    async transport(url, request) {
      const response = await transport(url, request);
      const pause = msUntilReset(response.headers, clock.now());
      if (pause !== undefined) for (const gate of adaptive) gate.pause(pause);
      return response;
    },
  };
  return { ...serving, model: { ...model, provider } };
}
