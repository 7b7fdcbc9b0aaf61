// What differs between providers that speak one format, as data: each vendor's row in vendors.json says how it departs from
// the generic one (WIRE.md 6, 7.1); the configuration overrides it field by field, in a provider, and again in a model.
import { createHash } from "node:crypto";
import {
  array,
  boolean,
  jsonObject,
  literal,
  nonEmpty,
  number,
  object,
  optional,
  partial,
  record,
  type Infer,
} from "../schema/checker.ts";
import type { ChatRequest } from "../openai/request.ts";
import vendorsJson from "./vendors.json" with { type: "json" };

/** How thinking can be switched in each format. `always`: it cannot be, only its depth may be said; `none`: nothing is said. */
export const THINKING_SWITCHES = {
  openai: [
    "thinking",
    "reasoning_effort",
    "reasoning",
    "enable_thinking",
    "chat_template_kwargs",
    "always",
    "none",
  ],
  anthropic: ["adaptive", "budget", "none"],
  gemini: ["level", "budget", "none"],
  demo: ["thinking"],
} as const;
export type DialectName = keyof typeof THINKING_SWITCHES;
export const DIALECTS = Object.keys(THINKING_SWITCHES) as DialectName[];
export const traitFields = {
  thinking: literal(...new Set(Object.values(THINKING_SWITCHES).flat())),
  thinking_off: boolean(), // thinking can be switched off; if not, its text is left out unless it was asked for
  efforts: array(nonEmpty), // the depths of thinking that are known here: the nearest to the client's reasoning_effort is sent
  /** What a request may need that not every model can do. */
  supports: array(
    literal("tools", "json_object", "json_schema", "logprobs", "images", "audio", "files"),
  ),
  /** The form of tool_choice: `all` of them; `any` for "required", and no names; `auto`: nothing but that. */
  tool_choice: literal("all", "any", "auto"),
  max_temperature: number({ min: 0, max: 2 }),
  /** Parameters whose default is 1 at the provider too, so that they need not be sent where the client is silent. */
  defaults_to_one: array(literal("temperature", "top_p")),
  /** The provider refuses temperature and top_p together: top_p goes out only where the client set it and no temperature. */
  temperature_or_top_p: boolean(),
  /** What is not sent. What would change the reply's meaning makes the model unfit for a request that says it. */
  omit: array(
    literal(
      "temperature",
      "top_p",
      "frequency_penalty",
      "presence_penalty",
      "stop",
      "seed",
      "user",
      "parallel_tool_calls",
      "logprobs",
    ),
  ),
  rename: record(nonEmpty),
  extra: jsonObject(), // other names for parameters, and fields that are always sent
  /** Where tool calls that are sent back carry their reasoning while thinking is on; absent: in reasoning_content if the switch is `thinking`. */
  echo: optional(literal("reasoning_content", "reasoning", "none")),
  ask_usage: boolean(), // a stream's usage must be asked for
  stream_only: boolean(), // whole replies are put together from a stream
  think_tags: boolean(), // reasoning stands in the text, between `<think>` and `</think>`
  repeats_reasoning: boolean(), // a piece of reasoning that is sent twice in a row is meant once
  hidden_thinking_in_total: boolean(), // total_tokens beyond prompt and completion are unseen thinking, billed as completion
  /** The most tokens of a reply, thinking included: a request for more gets these. */
  max_output_tokens: optional(number({ min: 1, integer: true })),
};
const allTraits = object(traitFields, { strict: true });
const someTraits = object(partial(traitFields), { strict: true });
export type Traits = Infer<typeof allTraits>;

export const VENDORS = record(
  object(
    {
      title: nonEmpty,
      dialect: literal(...DIALECTS),
      base_url: optional(nonEmpty),
      needs_key: optional(boolean()), // a hosted service, which refuses requests without a key
      note: nonEmpty,
      traits: someTraits,
      reasoning: optional(someTraits), // `reasoning`: what is different for models that think
    },
    { strict: true },
  ),
)(vendorsJson, true);
const GENERIC = allTraits(vendorsJson.generic.traits, true);
/** `general` with what `own` says otherwise of its fields. */
export const withOverrides = <T extends object>(general: T, own: object = {}): T => ({
  ...general,
  ...Object.fromEntries(
    Object.entries(own).filter(([name, value]) => name in general && value !== undefined),
  ),
});
type Own = Partial<Infer<typeof someTraits>>;
type Named = { readonly vendor?: unknown; readonly dialect?: unknown };
/** The row of the vendor that a provider names, or of the only one that there is of a native dialect; undefined if there is none. */
export const vendorPreset = ({ vendor, dialect }: Named) =>
  VENDORS.get(String(vendor ?? (dialect === "openai" ? "generic" : dialect)));

/** The traits of a model: the generic ones, its vendor's, its provider's own, its own. */
export function traitsOf(
  provider: Own & Named,
  model: Own & { readonly reasoning: boolean },
): Traits {
  const { traits, reasoning } = vendorPreset(provider)!;
  return [traits, model.reasoning ? reasoning : {}, provider, model].reduce<Traits>(
    withOverrides,
    GENERIC,
  );
}

const DEPTHS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/** The depth of thinking that comes nearest to the one asked for, the deeper of two; undefined if none is known here. */
export function effortOf(wanted: string | undefined, { efforts }: Traits): string | undefined {
  if (wanted === undefined) return undefined;
  const distance = (effort: string) => Math.abs(DEPTHS.indexOf(effort) - DEPTHS.indexOf(wanted));
  return efforts.toSorted(
    (a, b) => distance(a) - distance(b) || DEPTHS.indexOf(b) - DEPTHS.indexOf(a),
  )[0];
}

/** The sampling parameters that go out. SPEC.md's default of both is 1, whatever the provider's own is. */
function samplingOf(
  chat: ChatRequest,
  { omit, max_temperature, defaults_to_one, temperature_or_top_p }: Traits,
) {
  const taken = (name: "temperature" | "top_p") => !omit.includes(name);
  const byDefault = (name: "temperature" | "top_p") =>
    taken(name) && !defaults_to_one.includes(name) ? 1 : undefined;
  const given = {
    temperature: taken("temperature") ? chat.temperature : undefined,
    top_p: taken("top_p") ? chat.top_p : undefined,
  };
  const onlyTopP = given.top_p !== undefined && given.temperature === undefined;
  if (temperature_or_top_p && onlyTopP) return { temperature: undefined, top_p: given.top_p };
  const temperature = given.temperature ?? byDefault("temperature");
  return {
    temperature: temperature && Math.min(temperature, max_temperature),
    top_p: temperature_or_top_p ? undefined : (given.top_p ?? byDefault("top_p")),
  };
}

/** The parameters that go out: in their range, without those that this provider does not take. */
export function parametersOf(chat: ChatRequest, traits: Traits) {
  const { omit, max_output_tokens = Infinity } = traits;
  const { frequency_penalty, presence_penalty, stop, seed, maxTokens, user } = chat;
  const all = {
    ...samplingOf(chat, traits),
    frequency_penalty,
    presence_penalty,
    stop,
    seed,
    max_tokens: maxTokens && Math.min(maxTokens, max_output_tokens),
    parallel_tool_calls: chat.tools && chat.parallel_tool_calls,
    logprobs: chat.logprobs || undefined,
    top_logprobs: chat.logprobs ? chat.top_logprobs : undefined,
    // Providers ask for a stable pseudonym of the end user; who it is stays here.
    user: user && createHash("sha256").update(user).digest("hex").slice(0, 32),
  };
  for (const name of omit) all[name] = undefined;
  return all;
}
