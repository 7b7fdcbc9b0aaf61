// The checks of providers and models in gateway.json, with the sections whose settings a provider
// may override.
import type { TraitOverrides } from "../core/providers/traits.ts";
import type { ModelSettings } from "../core/routing/model.ts";
import {
  boolean,
  literal,
  nonEmpty,
  number,
  optional,
  refine,
  string,
  withDefault,
} from "../core/schema/checker.ts";
import { integer, ms, partial, positive, price, wellFormed, strict, url } from "./fields.ts";
import type { CheckContext } from "./setting.ts";
import { traitChecks } from "./traits.ts";
import { vendorAddress, vendorPreset, type Formats } from "./vendors.ts";

/** Deadlines, in milliseconds. */
export const timeouts = {
  /** For opening a connection. */
  connect_ms: ms(5_000),
  /**
   * From sending the request to the first text, thinking or tool call. For a reply that is not
   * streamed: to its first byte.
   */
  first_token_ms: ms(60_000),
  /** Between two pieces of a reply. */
  idle_ms: ms(60_000),
  /** For a request with all of its attempts. In a provider's settings: for one attempt. */
  total_ms: ms(900_000),
  /** From the end of a reply to its usage and the end of its stream. */
  closing_ms: ms(2_000),
  /** How long a stream is read after its client has left, so that its usage can still arrive. */
  leave_ms: ms(1_000, 0),
};

export const retry = {
  max_retries: withDefault(integer(0, 10), 1),
  backoff_ms: ms(250),
  max_wait_ms: ms(3_000, 0),
};

/** A model as gateway.json has it, with only the traits that it states itself. */
export type WrittenModel = Omit<ModelSettings, "traits"> &
  TraitOverrides & {
    readonly reasoning_score?: number | undefined;
    readonly quality_score?: number | undefined;
  };

/** The checks of traits that a provider or a model may state, for these formats. */
function traitsIn({ dialects }: Formats) {
  const switches = [...dialects.values()].flatMap(({ thinkingSwitches }) => thinkingSwitches);
  return partial({ ...traitChecks, thinking: literal(...new Set(switches)) });
}

/** A part of a host name. */
const hostPart = optional(
  string({ pattern: /^[a-z\d-]+$/i, expected: "letters, digits and -, such as us-east-1" }),
);
const place = optional(
  string({ pattern: /^[\w.:-]+$/, expected: "letters, digits and any of _ . : -" }),
);

/** The check of a provider. `base_url` absent: the vendor's. */
export const providerCheck = ({ credential, extended }: CheckContext, formats: Formats) =>
  refine(
    strict(
      extended("providers.*", {
        vendor: optional(literal(...formats.vendorNames)),
        dialect: optional(literal(...formats.dialectNames)),
        base_url: optional(url),
        api_key: optional(credential),
        region: hostPart,
        project: place,
        location: hostPart,
        api_version: place,
        ...traitsIn(formats),
        timeouts: optional(strict(partial(timeouts))),
        retry: optional(strict(partial(retry))),
      }),
    ),
    (provider) => {
      // If there is no preset, another check reports the vendor or the dialect.
      const preset = vendorPreset(provider);
      if (!preset) return { ...provider, dialect: "openai", base_url: "" };
      const { base_url = vendorAddress(preset, provider) } = provider;
      return { ...provider, dialect: provider.dialect ?? preset.dialect, base_url };
    },
  );

/** Prices in the currency per million tokens. */
export const prices = {
  input_cache_hit: optional(price),
  input_cache_miss: price,
  input_cache_write: optional(price),
  input_cache_write_1h: optional(price),
  output: price,
};

/**
 * The check of a model. `dialect` absent: the vendor's for this model. `upstream_model` absent: the
 * model's own name.
 */
export const modelCheck = ({ extended }: CheckContext, formats: Formats) =>
  strict(
    extended("models.*", {
      provider: nonEmpty,
      dialect: optional(literal(...formats.dialectNames)),
      upstream_model: optional(wellFormed(1)),
      reasoning: withDefault(boolean(), false),
      ...traitsIn(formats),
      context_tokens: optional(positive),
      reasoning_score: optional(number()),
      quality_score: optional(number()),
      price: optional(strict(extended("models.*.price", prices))),
    }),
  );
