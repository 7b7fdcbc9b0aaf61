// The checks of the fields of a body.
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

interface MapRules {
  /** The most members. */
  readonly max: number;
  /** What they are, for the client: "tokens". */
  readonly of: string;
  /** Names of members. */
  readonly pattern: RegExp;
  /** What they are, for the client. */
  readonly expected: string;
}

/** An object with members of any name that the rules allow, each with such a value. */
const mapOf = (value: Check<unknown>, { max, of, pattern, expected }: MapRules) =>
  typed(
    "object",
    {
      propertyNames: { pattern: pattern.source },
      additionalProperties: value.schema,
      maxProperties: max,
    },
    (given) => {
      const names = Object.keys(given);
      if (names.length > max) fail("invalid_value", `expected at most ${max} ${of}`);
      checkMembers(names, false, (name) => {
        if (!pattern.test(name)) fail("invalid_value", `expected ${expected}`);
        return value(given[name]);
      });
      return given;
    },
  );

/** More tokens than any use of it has; each of them is written again for the provider. */
const logitBias = mapOf(number({ min: -100, max: 100 }), {
  max: 1_024,
  of: "tokens",
  pattern: /^[0-9]{1,10}$/,
  expected: "the id of a token, 1 to 10 digits",
});

/** For providers that take `metadata`: as OpenAI bounds it. */
export const takenFields = object({
  metadata: optional(
    mapOf(string({ pattern: /^.{0,512}$/su, expected: "at most 512 characters" }), {
      max: 16,
      of: "members",
      pattern: /^.{1,64}$/su,
      expected: "a name of 1 to 64 characters",
    }),
  ),
});

/** As OpenAI bounds it. An emoji is one character. */
const cacheKey = string({ pattern: /^.{0,64}$/su, expected: "at most 64 characters" });

/** An empty text says as much as none. */
const unlessEmpty = (text: string | undefined): string | undefined => text || undefined;

/** A field that asks for a kind of reply that the gateway does not serve. */
const unserved = (message: string): Check<undefined> =>
  makeCheck(
    { type: "null" },
    (value) => (value === undefined || value === null ? value : fail("unsupported_value", message)),
    { optional: true },
  ) as Check<undefined>;

const textOnly = refine(
  string(),
  (kind) =>
    kind === "text" ? kind : fail("unsupported_value", 'only "text" is served, no audio replies'),
  { const: "text" },
);

export const chatFields = object({
  /** Their elements are checked as tools are. */
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
