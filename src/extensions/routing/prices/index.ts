// Other prices of a model: for service tiers such as "flex" or "priority", and for long prompts. A
// client's `service_tier` is forwarded to a model whose configuration has a price for that tier,
// and the reply is billed by the tier that its provider states.
import { positive, strict } from "../../../config/fields.ts";
import { configMoments } from "../../../config/extension.ts";
import { prices } from "../../../config/providers-and-models.ts";
import { invalid } from "../../../config/references.ts";
import { defineSetting } from "../../../config/setting.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Price } from "../../../core/ledger/price.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { Dialect } from "../../../core/providers/dialect.ts";
import type { Model, RoutingSettings } from "../../../core/routing/model.ts";
import { array, fail, optional, record, refine } from "../../../core/schema/checker.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { adapted } from "../capabilities/index.ts";

/** The price of requests whose prompt has more than `above_tokens` tokens, cached ones included. */
interface LongPrompts {
  readonly above_tokens: number;
  readonly price: Price;
}

/** A price, and the prices that replace it for long prompts, smallest `above_tokens` first. */
interface Schedule {
  /** Undefined: the model costs nothing. */
  readonly price: Price | undefined;
  readonly long: readonly LongPrompts[];
}

/** Schedules by the provider's names of the tiers. */
type Tiers = ReadonlyMap<string, Schedule>;

const longCheck = optional(
  refine(
    array(
      refine(strict({ above_tokens: positive, ...prices }), ({ above_tokens, ...price }) => ({
        above_tokens,
        price,
      })),
      { min: 1 },
    ),
    (rows) =>
      rows.every((row, at) => at === 0 || rows[at - 1]!.above_tokens < row.above_tokens)
        ? rows
        : fail("invalid_value", "expected each above_tokens to be more than the one before it"),
  ),
);

const tierCheck = refine(
  strict({ ...prices, long_prompts: longCheck }),
  ({ long_prompts: long = [], ...price }): Schedule => ({ price, long }),
);

const longPrompts = defineSetting("models.*.long_prompts", undefined, () => longCheck);
const tiers = defineSetting("models.*.service_tiers", undefined, () => record(tierCheck));

export const settings = [longPrompts, tiers];

export function install(gateway: Installer): void {
  gateway.on(adapted, withPrices);
  gateway.on(configMoments.issues, issuesIn);
}

/** Reports models without `price` that have other prices: all other replies would be free. */
const issuesIn = (json: unknown): ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["models"])).flatMap(([name, model]) => {
    const { price, long_prompts, service_tiers } = asObject(model);
    if (price != null || (long_prompts ?? service_tiers) == null) return [];
    return [invalid(["models", name, "price"], "is required beside long_prompts or service_tiers")];
  });

/** Adapts the models that have a price for long prompts, or for the tier that the request names. */
function withPrices(
  models: readonly Model[],
  chat: ChatRequest,
  config: RoutingSettings,
): readonly Model[] {
  const asked = asString(chat.further?.["service_tier"]);
  return models.map((model) => {
    const row = config.models.get(model.name);
    const usual = { price: row?.price, long: longPrompts.of(row) ?? [] };
    const ofTiers = tiers.of(row);
    if (asked !== undefined && ofTiers?.has(asked))
      return modelInTier(model, asked, ofTiers, usual);
    return usual.long.length > 0 ? priced(model, [usual], () => usual) : model;
  });
}

/** The model for one request that asks for a tier. Its price is that of the tier of the reply. */
function modelInTier(model: Model, asked: string, ofTiers: Tiers, usual: Schedule): Model {
  const { provider, traits } = model;
  const scheduleOf = (tier: string): Schedule => ofTiers.get(tier) ?? usual;
  let stated = asked;
  const inTier: Model = {
    ...model,
    traits: { ...traits, extra: { ...traits.extra, service_tier: asked } },
    provider: {
      ...provider,
      dialectFor: (account) =>
        withTierListener(provider.dialectFor(account), (tier) => {
          stated = tier;
        }),
    },
    /** Each attempt begins with the requested tier, until its reply states another. */
    enter() {
      stated = asked;
      return model.enter();
    },
  };
  return priced(inTier, [scheduleOf(asked), usual], () => scheduleOf(stated));
}

/** The model at the prices of a `possible` schedule. The `actual` one is known after the reply. */
const priced = (model: Model, possible: readonly Schedule[], actual: () => Schedule): Model => ({
  ...model,
  highestPrice: (tokens) => highest(possible.flatMap((schedule) => pricesUpTo(schedule, tokens))),
  priceOf: ({ prompt_tokens }) => pricesUpTo(actual(), prompt_tokens).at(-1),
});

/** The prices that apply to prompts of at most `tokens` tokens, shortest prompts first. */
const pricesUpTo = ({ price, long }: Schedule, tokens: number): readonly (Price | undefined)[] => [
  price,
  ...long.filter(({ above_tokens }) => tokens > above_tokens).map((row) => row.price),
];

/** The highest of these prices for each class of tokens. Undefined: all cost nothing. */
function highest(all: readonly (Price | undefined)[]): Price | undefined {
  const stated = all.filter((price) => price !== undefined);
  if (stated.length === 0) return undefined;
  const names = stated.flatMap((price) => Object.keys(price) as (keyof Price)[]);
  const most = (name: keyof Price): number => Math.max(...stated.map((price) => price[name] ?? 0));
  return Object.fromEntries(names.map((name) => [name, most(name)])) as unknown as Price;
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
