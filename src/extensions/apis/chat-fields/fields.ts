// The checks of the fields of a body.
import {
  array,
  byType,
  checkMembers,
  fail,
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

/** More than any use of it has; each of them is written again for the provider. */
const MAX_BIASES = 1_024;
const TOKEN_ID = /^[0-9]{1,10}$/;

const bias = number({ min: -100, max: 100 });
/** By the ids of tokens. */
const logitBias = typed(
  "object",
  {
    propertyNames: { pattern: TOKEN_ID.source },
    additionalProperties: bias.schema,
    maxProperties: MAX_BIASES,
  },
  (value) => {
    const ids = Object.keys(value);
    if (ids.length > MAX_BIASES) fail("invalid_value", `expected at most ${MAX_BIASES} tokens`);
    checkMembers(ids, false, (id) => {
      if (!TOKEN_ID.test(id)) fail("invalid_value", "expected the id of a token, 1 to 10 digits");
      return bias(value[id]);
    });
    return value;
  },
);

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
  verbosity: optional(literal("low", "medium", "high")),
  prompt_cache_key: refine(optional(cacheKey), unlessEmpty),
  prompt_cache_retention: optional(literal("in_memory", "24h")),
  safety_identifier: refine(optional(string()), unlessEmpty),
  modalities: optional(array(textOnly)),
  web_search_options: unserved(
    "searching the web is not served; give the model a tool that searches",
  ),
  moderation: unserved("moderation is not served; leave the field out"),
});
export type ChatFields = Infer<typeof chatFields>;
