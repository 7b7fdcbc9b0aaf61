// A value by example for a JSON Schema, for the demo model's tool calls and structured replies. It knows what Pydantic, zod and people
// mostly write: const, enum, default, type, properties, required, items, minItems, minLength, maxLength, minimum, maximum, a few
// formats, $ref into the schema itself, allOf, and of anyOf or oneOf the first choice that is not null. By any other keyword, and where
// it becomes too deep or too much (the schema is a client's and may refer to itself), the value may not be valid.
import { asArray, asObject, asString } from "../protocol/foreign.ts";
import stringsJson from "./strings.json" with { type: "json" };

/** From here on what may be null, empty or left out is: a schema that refers to itself mostly allows an end there. */
const TERSE_DEPTH = 3;
/** Of the value, with the references that lead there; below it is null. */
const MAX_DEPTH = 20;
/** Each value costs 100, and the characters of its schema, so that large ones cannot be repeated. When it is spent all is null. */
const MAX_COST = 500_000;
/** Of a string or a list. */
const MAX_LENGTH = 1_000;

/** Strings by their format, or by the name of their property. */
const KNOWN_STRINGS = new Map(Object.entries(stringsJson));

/** The first `length` characters, none of them cut in half. */
export const cut = (text: string, length: number): string => [...text.slice(0, 2 * length)].slice(0, length).join("");

/** `question` fills strings that nothing else is known of. */
export function exampleOf(schema: Record<string, unknown>, question: string): unknown {
  let left = MAX_COST;

  /** `name` is that of the property that the value is for, itself or as an item. */
  function example(given: unknown, name: string, depth: number): unknown {
    left -= 100;
    const terse = depth >= TERSE_DEPTH;
    const parts = partsOf(given, terse, depth);
    if (parts.length === 0) return null;
    const here = Object.fromEntries(parts.flatMap((part) => Object.entries(part)));
    const bound = (keyword: string, otherwise: number) => (typeof here[keyword] === "number" ? here[keyword] : otherwise);
    const stated = [here["const"], asArray(here["enum"])[0], here["default"]].find((each) => each !== undefined);
    if (stated !== undefined) return stated;
    const types = [here["type"]].flat();
    const type = types.find((each) => (each === "null") === terse) ?? types[0];
    if (type === "null") return null;
    if (type === "boolean") return true;
    if (type === "integer" || type === "number") return Math.min(Math.max(1, bound("minimum", 1)), bound("maximum", Infinity));
    const item = () => example(here["items"], name, depth + 1);
    if (type === "array") return Array.from({ length: Math.min(bound("minItems", terse ? 0 : 1), MAX_LENGTH) }, item);
    if (type === "object" || here["properties"] !== undefined) {
      const properties = Object.fromEntries(parts.flatMap((part) => Object.entries(asObject(part["properties"]))));
      const required = parts.flatMap((part) => asArray(part["required"])).filter((key) => typeof key === "string");
      const wanted = required.length > 0 || terse ? required : Object.keys(properties); // so that there is something to see
      return Object.fromEntries(wanted.map((key) => [key, example(properties[key], key, depth + 1)]));
    }
    const text = KNOWN_STRINGS.get(asString(here["format"]) ?? name) ?? (cut(question.trim(), 60) || "example");
    return cut(text.padEnd(Math.min(bound("minLength", 0), MAX_LENGTH), "x"), bound("maxLength", MAX_LENGTH));
  }

  /** A schema, and all that it takes in by $ref, allOf and anyOf or oneOf: the value must satisfy each of them. */
  function partsOf(given: unknown, terse: boolean, depth: number): Record<string, unknown>[] {
    if (given === undefined || left < 0 || depth > MAX_DEPTH) return [];
    const here = asObject(given);
    left -= JSON.stringify(here).length;
    // `#/$defs/City`: the names on the way there from the whole schema
    const referred = asString(here["$ref"])?.split("/").slice(1).reduce<unknown>((at, step) => asObject(at)[step], schema);
    const choices = asArray(here["anyOf"] ?? here["oneOf"]);
    const choice = choices.find((each) => (asObject(each)["type"] === "null") === terse) ?? choices[0];
    return [here, ...[referred, ...asArray(here["allOf"]), choice].flatMap((each) => partsOf(each, terse, depth + 1))];
  }

  return example(schema, "", 0);
}
