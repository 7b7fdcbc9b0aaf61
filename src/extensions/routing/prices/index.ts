// Other prices of a model: for service tiers such as "flex" or "priority", and for long prompts. A
// client's `service_tier` is forwarded to a model whose configuration has a price for that tier,
// and the reply is billed by the tier that its provider states. The `speed` of a request in the
// Messages API is a tier too, for a provider of that format.
import { positive, strict } from "../../../config/fields.ts";
import { configHooks } from "../../../config/extension.ts";
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
import { adaptModels } from "../capabilities/index.ts";

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
  gateway.on(adaptModels, withPrices);
  gateway.on(configHooks.issues, issuesIn);
}

/** Reports models without `price` that have other prices: all other replies would be free. */
const issuesIn = (json: unknown): ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["models"])).flatMap(([name, model]) => {
    const { price, long_prompts, service_tiers } = asObject(model);
    if (price != null || (long_prompts ?? service_tiers) == null) return [];
    return [invalid(["models", name, "price"], "is required with long_prompts or service_tiers")];
  });

/** Adapts the models that have a price for long prompts, or for the tier that the request names. */
function withPrices(
  models: readonly Model[],
  chat: ChatRequest,
  config: RoutingSettings,
): readonly Model[] {
  const service_tier = asString(chat.extras?.["service_tier"]);
  return models.map((model) => {
    const asked = service_tier ?? speedOf(chat, model) ?? "";
    const row = config.models.get(model.name);
    const usual = { price: row?.price, long: longPrompts.of(row) ?? [] };
    const scheduleOf = (tier: string) => scheduleIn(tiers.of(row), tier);
    if (scheduleOf(asked)) {
      const { traits, provider } = model;
      const extra = { ...traits.extra, ...tierField(provider.dialect, service_tier) };
      const asking = { ...model, traits: { ...traits, extra } };
      return modelInTier(asking, asked, (tier) => scheduleOf(tier) ?? usual, usual);
    }
    return usual.long.length > 0 ? priced(model, [usual], () => usual) : model;
  });
}

/** The speed that a request asks of a model. Only one of the request's own format gets it. */
const speedOf = ({ native }: ChatRequest, { provider }: Model): string | undefined =>
  native?.dialect === provider.dialect ? asString(native.body["speed"]) : undefined;

/** OpenAI renamed a tier. It takes both names, and may state either, whichever was asked for. */
const OTHER_NAME: ReadonlyMap<string, string> = new Map([
  ["fast", "priority"],
  ["priority", "fast"],
]);

/** The schedule of a tier, by either of its names. Undefined: the tier has no price. */
const scheduleIn = (ofTiers: Tiers | undefined, tier: string): Schedule | undefined =>
  ofTiers?.get(tier) ?? ofTiers?.get(OTHER_NAME.get(tier) ?? "");

/** The field by which a request in this format asks for the tier. Undefined: it asks for none. */
function tierField(dialect: string, service_tier: string | undefined): object | undefined {
  if (service_tier === undefined) return undefined;
  return dialect === "converse" ? { serviceTier: { type: service_tier } } : { service_tier };
}

/** A model for one request that asks for the tier. It has the price of the tier of its reply. */
function modelInTier(
  model: Model,
  asked: string,
  scheduleOf: (tier: string) => Schedule,
  usual: Schedule,
): Model {
  const { provider } = model;
  let stated = asked;
  const inTier: Model = {
    ...model,
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

/**
 * OpenAI states the tier of a reply beside its choices, as Converse does, or in the response that
 * an event contains; Anthropic, which also has a speed, and Gemini in the usage.
 */
function statedTier(json: unknown): string | undefined {
  const { response = json } = asObject(json);
  const { service_tier, serviceTier, usage, message, usageMetadata } = asObject(response);
  const ofAnthropic = asObject(usage ?? asObject(message)["usage"]);
  if (ofAnthropic["speed"] === "fast") return "fast";
  const ofGemini = asObject(usageMetadata)["serviceTier"];
  const ofConverse = asObject(serviceTier)["type"];
  return asString(service_tier ?? ofAnthropic["service_tier"] ?? ofGemini ?? ofConverse);
}
