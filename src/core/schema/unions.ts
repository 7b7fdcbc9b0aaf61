// Checks that choose one of several checks: by the value's JSON type, or by a field that names the
// kind of object.
import type { Check, Fields, Infer } from "./check.ts";
import { object } from "./containers.ts";
import { literal } from "./scalars.ts";
import { isObject, makeCheck, nounOf, typeOf, wrongType } from "./typed.ts";

/** Applies the check that `choose` names for the value. */
const oneOf = <C extends Fields>(
  checks: C,
  choose: (value: unknown) => string,
): Check<Infer<C[keyof C]>> =>
  makeCheck(
    { anyOf: Object.values(checks).map(({ schema }) => schema) },
    (value, all) => checks[choose(value)]!(value, all) as Infer<C[keyof C]>,
  );

/**
 * A check for each JSON type: `byType({ string: ..., array: ... })`. Issues keep their exact path.
 */
export function byType<C extends Fields>(checks: C): Check<Infer<C[keyof C]>> {
  const expected = Object.keys(checks).map(nounOf).join(" or ");
  return oneOf(checks, (value) =>
    typeOf(value) in checks ? typeOf(value) : wrongType(expected, value),
  );
}

/**
 * A tagged union: the string field `tag` names the object check that applies to the whole. Each of
 * them has this field.
 */
export function variant<V extends Fields>(tag: string, variants: V): Check<Infer<V[keyof V]>> {
  const tagCheck = object({ [tag]: literal(...Object.keys(variants)) });
  return oneOf(variants, (value) => {
    const name = isObject(value) ? value[tag] : undefined;
    const isKnown = typeof name === "string" && Object.hasOwn(variants, name);
    return isKnown ? name : tagCheck(value)[tag]!;
  });
}
