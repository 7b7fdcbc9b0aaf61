// A value by example for a JSON Schema, for the demo model's tool calls and structured replies. It
// knows const, enum, type, properties, required, items, minItems, minimum, maximum, a few formats,
// $ref into the schema itself, and of anyOf, oneOf or allOf the first that is not null. By any
// other keyword the value may not be valid. The schema is a client's and may refer to itself in
// many places, so depth and size are bounded: beyond the bounds every value is null.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/** The most levels of a value, the references that lead there included. */
const MAX_DEPTH = 20;
/** From this level on null is preferred to other alternatives, and nothing is optional. */
const TERSE_DEPTH = 3;
const MAX_ITEMS = 1_000;
/** The most characters of the value and of what is looked at for it. */
const MAX_CHARS = 200_000;
/** What each value counts at least. */
const CHARS_A_VALUE = 100;

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

/** `question` fills strings about which the schema says nothing else. */
export function exampleOf(root: Schema, question: string): unknown {
  let charsLeft = MAX_CHARS;

  /** `name`: that of the property that the value is for, itself or as an item. */
  function example(node: unknown, name: string, depth: number): unknown {
    charsLeft -= CHARS_A_VALUE + name.length;
    if (node === undefined || charsLeft < 0 || depth > MAX_DEPTH) return null;
    const schema = asObject(node);
    const { enum: values, const: constant = asArray(values)[0] } = schema;
    if (constant !== undefined) {
      charsLeft -= JSON.stringify(constant).length;
      return constant;
    }
    const { $ref, anyOf, oneOf = anyOf, allOf = oneOf, properties } = schema;
    const substitute = referred($ref) ?? (properties ? undefined : choice(asArray(allOf), depth));
    if (substitute !== undefined) return example(substitute, name, depth + 1);
    return typedExample(schema, name, depth);
  }

  function typedExample(schema: Schema, name: string, depth: number): unknown {
    const { items, properties, format } = schema;
    switch (choice([schema["type"]].flat(), depth) ?? (properties ? "object" : "string")) {
      case "null":
        return null;
      case "boolean":
        return true;
      case "integer":
      case "number": {
        const least = Math.max(1, numberIn(schema["minimum"], 1));
        return Math.min(least, numberIn(schema["maximum"], least));
      }
      case "array": {
        const usual = depth < TERSE_DEPTH ? 1 : 0;
        const length = Math.min(numberIn(schema["minItems"], usual), MAX_ITEMS);
        return Array.from({ length }, () => example(items, name, depth + 1));
      }
      case "object":
        return exampleObject(schema, depth);
      default:
        return KNOWN_STRINGS.get(asString(format) ?? name) ?? (question || "example");
    }
  }

  function exampleObject(schema: Schema, depth: number): object {
    const properties = asObject(schema["properties"]);
    const required = asArray(schema["required"]).filter((key) => typeof key === "string");
    // Without required properties all are shown, so that there is something to see.
    const isShown = required.length === 0 && depth < TERSE_DEPTH;
    const keys = isShown ? Object.keys(properties) : required;
    return Object.fromEntries(keys.map((key) => [key, example(properties[key], key, depth + 1)]));
  }

  /** The part of the schema that a reference such as `#/$defs/City` points to. */
  function referred(reference: unknown): unknown {
    const text = asString(reference);
    if (text === undefined) return undefined;
    charsLeft -= text.length;
    const steps = text.split("/").slice(1);
    return steps.reduce<unknown>((at, step) => asObject(at)[step], root);
  }

  /** The first alternative that is not null, or deep down the one that is, else the first. */
  function choice(alternatives: readonly unknown[], depth: number): unknown {
    charsLeft -= alternatives.length;
    const isTerse = depth >= TERSE_DEPTH;
    return alternatives.find((each) => isNull(each) === isTerse) ?? alternatives[0];
  }

  return example(root, "", 0);
}

/** Of a schema, or of a value of `type`. */
const isNull = (alternative: unknown): boolean =>
  alternative === "null" || asObject(alternative)["type"] === "null";

const numberIn = (stated: unknown, otherwise: number): number =>
  typeof stated === "number" ? stated : otherwise;
