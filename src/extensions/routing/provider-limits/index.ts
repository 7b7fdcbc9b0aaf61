// Bounds of what providers and models are asked for. A request beyond them goes to the next
// candidate, or waits a moment if there is none.
import type { Installer } from "../../../core/extension/installer.ts";
import { positive, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { moments } from "../../../core/extension/places.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import type { Serving } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { boolean, optional, withDefault } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { resetOfExhausted } from "../../providers/provider-words/index.ts";
import { once } from "../../scale/installation/index.ts";
import { gatesFor, serveGates, type Door, type Entry, type Gates } from "../gates/index.ts";

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

/** Names these gates among those of other extensions. */
const SUBJECT = "provider-limits";

export const settings = [ofProviders, ofModels];

export function install(gateway: Installer): void {
  gateway.around((context) => {
    const gates = gatesFor(context, SUBJECT);
    context.on("report", gates.limits);
    return bounded(gates, context.clock, () => context.current().config);
  });
  gateway.on(once, (host) => serveGates(SUBJECT, host));
  gateway.on(moments.status, (reports) => ({ provider_limits: Object.assign({}, ...reports) }));
}

/** What a request to a model must pass. */
function doorsOf({ providers, models }: Config, { name, provider }: Model): readonly Door[] {
  const doors: Door[] = [];
  const ofModel = ofModels.of(models.get(name));
  const ofProvider = ofProviders.of(providers.get(provider.name));
  // Who waits for the model does not hold a place at the provider meanwhile.
  if (ofModel) doors.push({ name: `model ${name}`, bounds: ofModel });
  if (ofProvider) doors.push({ name: `provider ${provider.name}`, bounds: ofProvider });
  return doors;
}

const bounded =
  (gates: Gates, clock: Clock, config: () => Config) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const inForce = config();
    if (candidates.every((model) => doorsOf(inForce, model).length === 0))
      return complete(chat, candidates, deliver, context);
    const { account, attempt } = context;
    return complete(chat, candidates, deliver, {
      ...context,
      async attempt(attemptChat, serving, take, options) {
        const { model, meter } = serving;
        const doors = doorsOf(inForce, model);
        const adaptive = closedByHeads(inForce, model, doors);
        // Another candidate may have room. Only the last one that can be asked is waited for.
        const at = candidates.findIndex(({ name }) => name === model.name);
        const isLast = candidates.slice(at + 1).every(({ status }) => status().retryMs > 0);
        const waitMs = isLast ? model.provider.retry.max_wait_ms : 0;
        await passAll(gates, doors, { account, waitMs, cancel: options.cancel, clock });
        let overloaded = false;
        try {
          await attempt(attemptChat, watched(serving, adaptive, gates, clock), take, options);
        } catch (error) {
          overloaded = error instanceof ProviderError && error.code === "model_overloaded";
          throw error;
        } finally {
          const { prompt_tokens, completion_tokens } = meter.usage().usage;
          for (const door of doors)
            gates.leave(door, prompt_tokens + completion_tokens, overloaded);
        }
      },
    });
  };

/** Who waits, and on which clock. */
interface Waiting {
  readonly cancel: Cancel;
  readonly clock: Clock;
}

/** Passes all gates, or none: throws a ProviderError, which is no fault of the provider's. */
async function passAll(
  gates: Gates,
  doors: readonly Door[],
  { clock, waitMs, ...request }: Omit<Entry, keyof Door> & Waiting,
): Promise<void> {
  const endsAt = clock.monotonic() + waitMs;
  const passed = new Map<Door, number>();
  for (const door of doors) {
    const left = waitMs === 0 ? 0 : endsAt - clock.monotonic();
    const entered = await gates.enter({ ...door, ...request, waitMs: left });
    if (entered !== true) {
      for (const [other, at] of passed) gates.undo(other, clock.monotonic() - at);
      if (request.cancel.aborted) throw request.cancel.reason;
      throw new ProviderError("model_overloaded", "the limits of the configuration are reached", {
        fromContent: true,
        permanent: true,
        ...(entered < Infinity && { retryAfterMs: entered }),
      });
    }
    passed.set(door, clock.monotonic());
  }
}

/**
 * The adaptive ones of these doors, which the heads of replies can close. Where a provider has
 * several keys, a head speaks of one of them.
 */
function closedByHeads(
  { providers }: Config,
  { provider }: Model,
  doors: readonly Door[],
): readonly Door[] {
  if (asObject(providers.get(provider.name))["api_keys"]) return [];
  return doors.filter(({ bounds }) => bounds.adaptive);
}

/** A gate closes when the head of a reply says that nothing is left until a time. */
function watched(serving: Serving, adaptive: readonly Door[], gates: Gates, clock: Clock): Serving {
  if (adaptive.length === 0) return serving;
  const { model } = serving;
  const { transport } = model.provider;
  const provider: Model["provider"] = {
    ...model.provider,
    async transport(url, request) {
      const response = await transport(url, request);
      const pause = resetOfExhausted(response.headers, clock.now());
      if (pause !== undefined) for (const door of adaptive) gates.pause(door, pause);
      return response;
    },
  };
  return { ...serving, model: { ...model, provider } };
}
