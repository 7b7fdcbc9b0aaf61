// Bounds of what providers and models are asked for. A request beyond them goes to the next
// candidate, or waits a moment if there is none.
import type { ConfigExtension } from "../../../config/extension.ts";
import { positive, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import { moments } from "../../../core/extension/places.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { attempt as plainAttempt } from "../../../core/routing/attempt.ts";
import type { Complete } from "../../../core/routing/fallback.ts";
import type { Model } from "../../../core/routing/model.ts";
import { boolean, optional, withDefault } from "../../../core/schema/checker.ts";
import { createGate, type Bounds, type Gate } from "./gate.ts";

const check = () =>
  optional(
    strict({
      rpm: optional(positive),
      tpm: optional(positive),
      max_in_flight: optional(positive),
      adaptive: withDefault(boolean(), false),
    }),
  );

const ofProviders = defineSetting<Bounds | undefined>("providers.*.limits", undefined, check);
const ofModels = defineSetting<Bounds | undefined>("models.*.limits", undefined, check);

export const extension: ConfigExtension = {
  name: "provider-limits",
  settings: [ofProviders, ofModels],
  install(gateway) {
    gateway.around(({ clock, current, on }) => {
      const gates = createGates(clock);
      on("report", () => gates.limits(current().config));
      return bounded(gates.of, () => current().config);
    });
    gateway.on(moments.status, (reports) => ({ provider_limits: reports }));
  },
};

/** The gates of a process, by the bounds in its configuration. A reload begins with new ones. */
function createGates(clock: Clock) {
  const all = new WeakMap<Bounds, Gate>();

  function gateOf(bounds: Bounds | undefined): readonly Gate[] {
    if (!bounds) return [];
    const gate = all.get(bounds) ?? createGate(bounds, clock);
    all.set(bounds, gate);
    return [gate];
  }
  return {
    /** The gates that a request to a model must pass. */
    of({ providers, models }: Config, { name, provider }: Model): readonly Gate[] {
      const [row, model] = [providers.get(provider.name), models.get(name)];
      return [...gateOf(row && ofProviders.of(row)), ...gateOf(model && ofModels.of(model))];
    },
    /** Requests at once that are allowed now, by the names of providers. */
    limits: ({ providers }: Config) =>
      Object.fromEntries(
        [...providers].flatMap(([name, row]) => {
          const [gate] = gateOf(ofProviders.of(row));
          return gate && gate.limit() < Infinity ? [[name, gate.limit()]] : [];
        }),
      ),
  };
}

const bounded =
  (gatesOf: (config: Config, model: Model) => readonly Gate[], config: () => Config) =>
  (complete: Complete): Complete =>
  (chat, candidates, deliver, context) => {
    const inForce = config();
    if (candidates.every((model) => gatesOf(inForce, model).length === 0))
      return complete(chat, candidates, deliver, context);
    const { attempt = plainAttempt } = context;
    return complete(chat, candidates, deliver, {
      ...context,
      async attempt(attemptChat, serving, take, options) {
        const { model, meter } = serving;
        const gates = gatesOf(inForce, model);
        // Another candidate may have room. Only the last one is waited for.
        const isLast = candidates.at(-1)?.name === model.name;
        const waitMs = isLast ? model.provider.retry.max_wait_ms : 0;
        const passed = await passAll(gates, context.account, waitMs);
        let overloaded = false;
        try {
          await attempt(attemptChat, serving, take, options);
        } catch (error) {
          overloaded = error instanceof ProviderError && error.code === "model_overloaded";
          throw error;
        } finally {
          const { prompt_tokens, completion_tokens } = meter.usage().usage;
          for (const gate of passed) gate.leave(prompt_tokens + completion_tokens, overloaded);
        }
      },
    });
  };

/** Passes all gates, or none: throws a ProviderError, which is no fault of the provider's. */
async function passAll(
  gates: readonly Gate[],
  account: string,
  waitMs: number,
): Promise<readonly Gate[]> {
  const passed: Gate[] = [];
  for (const gate of gates) {
    const entered = gate.tryEnter();
    if (entered !== true && !(waitMs > 0 && (await gate.wait(account, waitMs)))) {
      for (const other of passed) other.leave(0, false);
      throw new ProviderError("model_overloaded", "the limits of the configuration are reached", {
        fromContent: true,
        permanent: true,
        ...(entered < Infinity && { retryAfterMs: entered }),
      });
    }
    passed.push(gate);
  }
  return passed;
}
