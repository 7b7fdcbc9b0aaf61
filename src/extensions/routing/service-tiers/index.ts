// Service tiers: the same model at another price, such as "flex" or "priority". A client's
// `service_tier` reaches a model whose configuration has a price for that tier, and the reply is
// billed by the tier that its provider states.
import type { Installer } from "../../../core/extension/installer.ts";
import { priceCheck } from "../../../config/providers-and-models.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Price } from "../../../core/ledger/price.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import type { Model, RoutingSettings } from "../../../core/routing/model.ts";
import { record } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { adapted } from "../capabilities/index.ts";

/** Prices by the names of tiers, as the provider has them. */
type Tiers = ReadonlyMap<string, Price>;

const tiers = defineSetting("models.*.service_tiers", undefined, () => record(priceCheck));

export const settings = [tiers];

export function install(gateway: Installer): void {
  gateway.on(adapted, inTier);
}

/** Adapts the models that have a price for the tier that the request names. */
function inTier(
  models: readonly Model[],
  chat: ChatRequest,
  config: RoutingSettings,
): readonly Model[] {
  const asked = asString(chat.further?.["service_tier"]);
  if (asked === undefined) return models;
  return models.map((model) => {
    const prices = tiers.of(config.models.get(model.name));
    return prices?.has(asked) ? modelInTier(model, asked, prices) : model;
  });
}

/** A model for one request: it asks for the tier, and has the price of the tier of its reply. */
function modelInTier(model: Model, asked: string, prices: Tiers): Model {
  const { provider, traits } = model;
  const priceOf = (tier: string): Price | undefined => prices.get(tier) ?? model.price;
  // Before the reply it is unknown which tier applies, so budgets hold the higher price.
  let price = dearer(priceOf(asked), model.price);
  return {
    ...model,
    traits: { ...traits, extra: { ...traits.extra, service_tier: asked } },
    provider: {
      ...provider,
      dialectFor: (account) =>
        withTierListener(provider.dialectFor(account), (tier) => {
          price = priceOf(tier);
        }),
    },
    /** Each attempt begins with the tier that was asked for. */
    enter() {
      price = priceOf(asked);
      return model.enter();
    },
    get price() {
      return price;
    },
  };
}

/** The higher of two prices, for each class of tokens. */
function dearer(one: Price | undefined, other: Price | undefined): Price | undefined {
  if (!one || !other) return one ?? other;
  const names = Object.keys({ ...one, ...other }) as (keyof Price)[];
  const higher = names.map((name) => [name, Math.max(one[name] ?? 0, other[name] ?? 0)]);
  return Object.fromEntries(higher) as Price;
}

/** The dialect, with a decoder that calls `onTier` for each tier that a reply states. */
const withTierListener = (dialect: Dialect, onTier: (tier: string) => void): Dialect => ({
  ...dialect,
  decoder(...args) {
    const decoder = dialect.decoder(...args);
    return {
      ...decoder,
      push(json) {
        const stated = statedTier(json);
        if (stated !== undefined) onTier(stated);
        return decoder.push(json);
      },
    };
  },
});

/** OpenAI states the tier of a reply beside its choices, Anthropic in its usage. */
function statedTier(json: unknown): string | undefined {
  const { service_tier, usage, message } = asObject(json);
  const ofUsage = asObject(usage ?? asObject(message)["usage"])["service_tier"];
  return asString(service_tier ?? ofUsage);
}
