// A value by example for a JSON Schema, for the demo model's tool calls and structured replies. It knows const, enum, default, type,
// properties, required, items, minItems, minimum, maximum, a few formats, $ref into the schema itself, and of anyOf, oneOf or allOf the
// first that is not null. By any other keyword, and where it becomes too deep or too much (the schema is a client's and may refer to
// itself), the value may not be valid.
import { asArray, asObject, asString } from "../../core/schema/untrusted-json.ts";
import stringsJson from "./strings.json" with { type: "json" };

const KNOWN_STRINGS = new Map(Object.entries(stringsJson)); // by their format, or by the name of their property
const TERSE_DEPTH = 3; // from here on what may be null, empty or left out is: a schema that refers to itself mostly allows an end there
const MAX_DEPTH = 20; // of the value, with the references that lead there; below it is null
/** Each value costs 100, and the characters of its schema, so that large ones cannot be repeated. When it is spent all is null. */
const MAX_COST = 500_000;
const MAX_ITEMS = 1_000;
/** `question` fills strings that nothing else is known of. */
export function exampleOf(schema: Record<string, unknown>, question: string): unknown {
  let left = MAX_COST;

  /** `name` is that of the property that the value is for, itself or as an item. */
  function example(given: unknown, name: string, depth: number): unknown {
    left -= 100;
    if (given === undefined || left < 0 || depth > MAX_DEPTH) return null;
    const here = asObject(given);
    left -= JSON.stringify(here).length;
    const terse = depth >= TERSE_DEPTH;
    const bound = (keyword: string, otherwise: number) =>
      typeof here[keyword] === "number" ? here[keyword] : otherwise;
    const stated = [here["const"], asArray(here["enum"])[0], here["default"]].find(
      (each) => each !== undefined,
    );
    if (stated !== undefined) return stated;
    // `#/$defs/City`: the names on the way there from the whole schema
    const referred = asString(here["$ref"])
      ?.split("/")
      .slice(1)
      .reduce<unknown>((at, step) => memberOf(asObject(at), step), schema);
    const choices = here["properties"]
      ? []
      : asArray(here["anyOf"] ?? here["oneOf"] ?? here["allOf"]);
    const instead =
      referred ??
      choices.find((each) => (asObject(each)["type"] === "null") === terse) ??
      choices[0];
    if (instead !== undefined) return example(instead, name, depth + 1);
    const types = [here["type"]].flat();
    const type = types.find((each) => (each === "null") === terse) ?? types[0];
    if (type === "null") return null;
    if (type === "boolean") return true;
    if (type === "integer" || type === "number")
      return Math.min(Math.max(1, bound("minimum", 1)), bound("maximum", Infinity));
    const item = () => example(here["items"], name, depth + 1);
    if (type === "array")
      return Array.from({ length: Math.min(bound("minItems", terse ? 0 : 1), MAX_ITEMS) }, item);
    if (type !== "object" && !here["properties"])
      return KNOWN_STRINGS.get(asString(here["format"]) ?? name) ?? (question || "example");
    const properties = asObject(here["properties"]);
    const required = asArray(here["required"]).filter((key) => typeof key === "string");
    const wanted = required.length > 0 || terse ? required : Object.keys(properties); // so that there is something to see
    return Object.fromEntries(
      wanted.map((key) => [key, example(memberOf(properties, key), key, depth + 1)]),
    );
  }

  return example(schema, "", 0);
}

/** The names are a client's: what every object inherits (`constructor`) is no member. */
const memberOf = (object: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;
