// The checks of these fields.
import {
  array,
  boolean,
  byType,
  checkMembers,
  fail,
  lenient,
  literal,
  makeCheck,
  nonEmpty,
  number,
  object,
  optional,
  refine,
  string,
  typed,
  type Check,
  type Infer,
} from "../../../core/schema/checker.ts";

/** An object with a bounded number of members. `noun` names them in messages to the client. */
const mapOf = (name: Check<string>, value: Check<unknown>, max: number, noun: string) =>
  typed(
    "object",
    { propertyNames: name.schema, additionalProperties: value.schema, maxProperties: max },
    (given) => {
      const names = Object.keys(given);
      if (names.length > max) fail("invalid_value", `expected at most ${max} ${noun}`);
      checkMembers(names, false, (member) => value(given[name(member)]));
      return given;
    },
  );

const tokenId = string({ pattern: /^[0-9]{1,10}$/, expected: "the id of a token, 1 to 10 digits" });
/** More tokens than any client needs. The bound limits the work of checking them. */
const logitBias = mapOf(tokenId, number({ min: -100, max: 100 }), 1_024, "tokens");

const key = string({ pattern: /^[\s\S]{1,64}$/u, expected: "a name of 1 to 64 characters" });
const text = string({ pattern: /^[\s\S]{0,512}$/u, expected: "at most 512 characters" });
/** OpenAI's bounds, for providers that accept `metadata`. */
export const openaiBounds = object({ metadata: optional(mapOf(key, text, 16, "members")) });

/** OpenAI's bound, in code points. */
const cacheKey = string({ pattern: /^[\s\S]{0,64}$/u, expected: "at most 64 characters" });

/** An empty text counts as absent. */
const unlessEmpty = (text: string | undefined): string | undefined => text || undefined;

/** A field that asks for a kind of reply that the gateway does not serve. */
const unserved = (message: string): Check<undefined> =>
  makeCheck(
    { type: "null" },
    (value) => (value == null ? undefined : fail("unsupported_value", message)),
    { optional: true },
  );

const textOnly = refine(
  string(),
  (kind) =>
    kind === "text" ? kind : fail("unsupported_value", 'only "text" is served, no audio replies'),
  { const: "text" },
);

export const chatFields = object({
  /** Checked here only to be objects. The check of `tools` does the rest. */
  functions: optional(array(typed("object", {}, (value) => value))),
  function_call: optional(
    byType({ string: literal("none", "auto"), object: object({ name: nonEmpty }) }),
  ),
  logit_bias: optional(logitBias),
  metadata: makeCheck({}, (value) => value ?? undefined, { optional: true }),
  store: lenient(boolean()),
  verbosity: optional(literal("low", "medium", "high")),
  prompt_cache_key: refine(optional(cacheKey), unlessEmpty),
  prompt_cache_retention: optional(literal("in_memory", "24h")),
  safety_identifier: refine(optional(string()), unlessEmpty),
  service_tier: lenient(nonEmpty),
  modalities: optional(array(textOnly)),
  web_search_options: unserved(
    "searching the web is not served; give the model a tool that searches",
  ),
  moderation: unserved("moderation is not served; leave the field out"),
});
export type ChatFields = Infer<typeof chatFields>;
