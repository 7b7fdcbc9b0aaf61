// A value by example for a JSON Schema, for the demo model's tool calls and structured replies. It knows what is common: const,
// enum, default, examples, type, properties, required, items, bounds and lengths, a few formats, $ref into the schema itself,
// allOf, and of anyOf or oneOf the first choice that is not null. It does not know pattern, multipleOf, uniqueItems, prefixItems,
// minProperties, not, if or anything rarer, nor ~0, ~1 and % in a $ref; there, between close exclusive bounds, and where it becomes
// too deep or too much work (the schema is a client's and may refer to itself), the value may not satisfy the schema.
import { asArray, asCount, asObject, asString } from "../protocol/foreign.ts";

/** From here on what may be null, empty or left out is: a schema that refers to itself mostly allows an end there. */
const TERSE_DEPTH = 3;
/** Of the value, which is null below, and of references that lead to references. */
const MAX_DEPTH = 10;
/** In characters: those of a schema each time that it is used, and those of the strings made from it. Then all is null. */
const MAX_WORK = 500_000;
/** Of a string or a list. */
const MAX_LENGTH = 1_000;

/** Strings by their format, or by the name of their property. */
const KNOWN_STRINGS = new Map(Object.entries({
  "date-time": "2026-01-01T12:00:00Z", date: "2026-01-01", time: "12:00:00Z", duration: "PT1H", email: "ada@example.com",
  uri: "https://example.com/", url: "https://example.com/", hostname: "example.com", ipv4: "127.0.0.1", ipv6: "::1",
  uuid: "00000000-0000-4000-8000-000000000000", city: "Oslo", location: "Oslo", country: "Norway", name: "Ada",
}));

/** The first `length` characters, none of them cut in half. */
export const cut = (text: string, length: number): string => [...text.slice(0, 2 * length)].slice(0, length).join("");

/** `question` fills strings that nothing else is known of. */
export function exampleOf(schema: Record<string, unknown>, question: string): unknown {
  const filler = cut(question.trim(), 60) || "example";
  let workLeft = MAX_WORK;

  /** `name` is that of the property that the value is for, itself or as an item. */
  function example(given: unknown, name: string, depth: number): unknown {
    if (workLeft < 0 || depth > MAX_DEPTH) return null;
    const terse = depth >= TERSE_DEPTH;
    const parts = partsOf(given, terse, 0);
    const here: Record<string, unknown> = Object.fromEntries(parts.flatMap((part) => Object.entries(part)));
    const stated = [here["const"], asArray(here["enum"])[0], here["default"], asArray(here["examples"])[0]];
    const value = stated.find((each) => each !== undefined);
    if (value !== undefined) return value;
    const types = [here["type"]].flat();
    const type = types.find((each) => (each === "null") === terse) ?? types[0];
    if (type === "null") return null;
    if (type === "boolean") return true;
    if (type === "integer" || type === "number") return numberOf(here, type === "integer");
    if (type === "array" || here["items"] !== undefined) {
      const wanted = Math.max(asCount(here["minItems"]) ?? 0, terse ? 0 : 1);
      const length = Math.min(wanted, asCount(here["maxItems"]) ?? MAX_LENGTH, MAX_LENGTH);
      return Array.from({ length }, () => example(here["items"], name, depth + 1));
    }
    if (type === "object" || here["properties"] !== undefined) {
      const properties = Object.fromEntries(parts.flatMap((part) => Object.entries(asObject(part["properties"]))));
      const required = parts.flatMap((part) => asArray(part["required"])).filter((key) => typeof key === "string");
      const wanted = required.length > 0 || terse ? required : Object.keys(properties); // so that there is something to see
      return Object.fromEntries(wanted.map((key) => [key, example(properties[key], key, depth + 1)]));
    }
    const text = KNOWN_STRINGS.get(asString(here["format"]) ?? name) ?? filler;
    const padded = text.padEnd(Math.min(asCount(here["minLength"]) ?? 0, MAX_LENGTH), "x");
    workLeft -= padded.length;
    return cut(padded, asCount(here["maxLength"]) ?? MAX_LENGTH);
  }

  /** A schema, and all that it takes in by $ref, allOf and anyOf or oneOf: the value must satisfy each of them. */
  function partsOf(given: unknown, wantNull: boolean, hops: number): Record<string, unknown>[] {
    if (workLeft < 0 || hops > MAX_DEPTH) return [];
    const here = asObject(given);
    workLeft -= JSON.stringify(here).length;
    // `#/$defs/City`: the names on the way there from the whole schema
    const referred = asString(here["$ref"])?.split("/").slice(1).reduce<unknown>((at, step) => asObject(at)[step], schema);
    const choices = asArray(here["anyOf"] ?? here["oneOf"]);
    const choice = choices.find((each) => (asObject(each)["type"] === "null") === wantNull) ?? choices[0];
    const taken = [referred, ...asArray(here["allOf"]), choice].filter((each) => each !== undefined);
    return [here, ...taken.flatMap((each) => partsOf(each, wantNull, hops + 1))];
  }

  return example(schema, "", 0);
}

/** 1, or the number within the bounds that is nearest to it; an exclusive bound counts as a whole step. */
function numberOf(here: Record<string, unknown>, integer: boolean): number {
  const bound = (name: string, otherwise: number) => (typeof here[name] === "number" ? here[name] : otherwise);
  const lowest = Math.max(1, bound("minimum", 1), bound("exclusiveMinimum", 0) + 1);
  const value = Math.min(lowest, bound("maximum", Infinity), bound("exclusiveMaximum", Infinity) - 1);
  return !integer ? value : value > 1 ? Math.ceil(value) : Math.floor(value);
}
