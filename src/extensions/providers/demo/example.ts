// Makes an example value for a JSON Schema, for the demo model's tool calls and structured replies.
// Knows const, enum, default, type, properties, required, items, minItems, minimum, maximum, a few
// formats, $ref into the schema itself, and of anyOf, oneOf or allOf the first that is not null.
// Ignores all other keywords, so the value may be invalid by them. A client's schema may refer to
// itself in many places, so depth and number of values are bounded: beyond that, values are null.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** The most levels of a value, including references. */
const MAX_DEPTH = 20;
/** From this level on, the smallest value is used: null, an empty list, no optional property. */
const TERSE_DEPTH = 3;
const MAX_VALUES = 2_000;
/** A constant or a name counts as one more value for each CHARS_A_VALUE of its characters. */
const CHARS_A_VALUE = 100;
const MAX_ITEMS = 1_000;
/** Alternatives of a choice beyond this number are ignored. */
const MAX_CHOICES = 100;
/** A longer reference is ignored. */
const MAX_REFERENCE_CHARS = 200;

/** Strings by their format, or by the name of their property. */
const KNOWN_STRINGS: ReadonlyMap<string, string> = new Map([
  ["date", "2026-01-01"],
  ["date-time", "2026-01-01T12:00:00Z"],
  ["email", "ada@example.com"],
  ["uri", "https://example.com/"],
  ["uuid", "00000000-0000-4000-8000-000000000000"],
  ["city", "Oslo"],
]);

type Schema = Readonly<Record<string, unknown>>;

/** `question` is the value of strings that the schema does not restrict. */
export function exampleOf(schema: Schema, question: string): unknown {
  let valuesLeft = MAX_VALUES;

  /** `name`: the name of the property that holds the value, directly or in a list. */
  function example(node: unknown, name: string, depth: number): unknown {
    valuesLeft -= 1 + Math.floor(name.length / CHARS_A_VALUE);
    if (node === undefined || valuesLeft < 0 || depth > MAX_DEPTH) return null;
    const here = asObject(node);
    const isTerse = depth >= TERSE_DEPTH;
    const constant = constantIn(here);
    if (constant !== undefined) return withCost(constant);
    const substitute = referredIn(schema, here["$ref"]) ?? choiceIn(here, isTerse);
    if (substitute !== undefined) return example(substitute, name, depth + 1);
    return typedExample(here, name, depth);
  }

  function typedExample(here: Schema, name: string, depth: number): unknown {
    const isTerse = depth >= TERSE_DEPTH;
    switch (typeIn(here, isTerse)) {
      case "null":
        return null;
      case "boolean":
        return true;
      case "integer":
      case "number":
        return Math.min(Math.max(1, bound(here, "minimum", 1)), bound(here, "maximum", Infinity));
      case "array": {
        const length = Math.min(bound(here, "minItems", isTerse ? 0 : 1), MAX_ITEMS);
        return Array.from({ length }, () => example(here["items"], name, depth + 1));
      }
      case "object":
        return exampleObject(here, depth);
      default:
        if (here["properties"]) return exampleObject(here, depth);
        return KNOWN_STRINGS.get(asString(here["format"]) ?? name) ?? (question || "example");
    }
  }

  function withCost(constant: unknown): unknown {
    valuesLeft -= Math.floor(JSON.stringify(constant).length / CHARS_A_VALUE);
    return constant;
  }

  function exampleObject(here: Schema, depth: number): object {
    const properties = asObject(here["properties"]);
    const required = asArray(here["required"]).filter((key) => typeof key === "string");
    // Without required properties, includes all, so that the example is not empty.
    const isSmall = required.length > 0 || depth >= TERSE_DEPTH;
    const keys = isSmall ? required : Object.keys(properties);
    return Object.fromEntries(
      keys.map((key) => [key, example(memberOf(properties, key), key, depth + 1)]),
    );
  }

  return example(schema, "", 0);
}

const constantIn = (here: Schema): unknown =>
  [here["const"], asArray(here["enum"])[0], here["default"]].find((value) => value !== undefined);

/**
 * The part of `root` that a reference such as `#/$defs/City` points to. Undefined: there is none.
 */
function referredIn(root: Schema, reference: unknown): unknown {
  const text = asString(reference);
  if (text === undefined || text.length > MAX_REFERENCE_CHARS) return undefined;
  const steps = text.split("/").slice(1);
  return steps.reduce<unknown>((at, step) => memberOf(asObject(at), step), root);
}

/** The first alternative that is null (if `isTerse`) or is not (if not). Without one, the first. */
function choiceIn(here: Schema, isTerse: boolean): unknown {
  if (here["properties"]) return undefined;
  const all = asArray(here["anyOf"] ?? here["oneOf"] ?? here["allOf"]);
  const choices = all.slice(0, MAX_CHOICES);
  return choices.find((choice) => (asObject(choice)["type"] === "null") === isTerse) ?? choices[0];
}

function typeIn(here: Schema, isTerse: boolean): unknown {
  const types = [here["type"]].flat().slice(0, MAX_CHOICES);
  return types.find((type) => (type === "null") === isTerse) ?? types[0];
}

function bound(here: Schema, keyword: string, otherwise: number): number {
  const stated = here[keyword];
  return typeof stated === "number" ? stated : otherwise;
}

/** Own members only: a client may use the name of an inherited one, such as `constructor`. */
const memberOf = (object: Schema, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;
