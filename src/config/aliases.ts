// The check of an alias in gateway.json.
import {
  array,
  boolean,
  fail,
  literal,
  nonEmpty,
  number,
  optional,
  refine,
  withDefault,
} from "../core/schema/checker.ts";
import { exactlyOne, strict, type Extend } from "./fields.ts";
import type { WrittenAlias } from "./policy.ts";

const aliasFields = {
  policy: optional(literal("reasoning", "value")),
  models: optional(array(nonEmpty, { min: 1 })),
  enabled: withDefault(boolean(), true),
  /** Of the score by which the policy ranks. */
  min_score: optional(number()),
  /** Blended, in the currency per million tokens. */
  max_price: optional(number({ min: 0 })),
};

/** `extended`: with the fields that extensions add. */
export const aliasCheck = (extended: Extend) =>
  refine(strict(extended("aliases.*", aliasFields)), (alias) =>
    boundedByPolicy(exactlyOne(alias, "policy", "models")),
  );

/** The bounds of a policy have no meaning beside a list. */
function boundedByPolicy<T extends WrittenAlias>(alias: T): T {
  for (const field of ["min_score", "max_price"] as const)
    if (alias.models && alias[field] !== undefined)
      fail("invalid_parameter_combination", "may only be set together with policy", [field]);
  return alias;
}
