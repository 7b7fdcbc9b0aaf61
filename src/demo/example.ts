// A value that satisfies a JSON Schema, for the demo model's tool calls and structured replies. It covers what tool
// definitions use; of `pattern` only what a few common strings happen to match, and nothing of `not`, `if` or
// `dependentSchemas`. The schema is a client's, so all the work that it can ask for is bounded.

import { asArray, asCount, asObject, asString } from "../dialects/foreign.ts";

type Schema = Readonly<Record<string, unknown>>;

/** Beyond this depth (a schema that refers to itself) optional things are left out. */
const MAX_DEPTH = 12;
const MAX_STEPS = 10_000;
const MAX_STRING = 10_000;
const MAX_ITEMS = 100;

const BY_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-01-01T12:00:00Z", date: "2026-01-01", time: "12:00:00Z", duration: "PT1H", email: "ada@example.com",
  uri: "https://example.com/", url: "https://example.com/", hostname: "example.com", ipv4: "127.0.0.1", ipv6: "::1",
  uuid: "00000000-0000-4000-8000-000000000000",
};
const BY_NAME: Readonly<Record<string, string>> = {
  city: "Oslo", location: "Oslo", place: "Oslo", country: "Norway", name: "Ada", language: "en", timezone: "Europe/Oslo", currency: "EUR",
};
const FOR_PATTERN = ["a", "A", "0", "abc", "ABC", "123", "00:00", "2026-01-01", "EUR", "a-b", "a_b", "A1", "#000000", "+4712345678"];

/** `question` fills strings that nothing else is known of. */
export function exampleOf(schema: Schema, question: string): unknown {
  let steps = 0;
  return example(schema, "", 0);

  function example(given: unknown, name: string, depth: number): unknown {
    const here = resolved(given);
    if ("const" in here) return here["const"];
    if (Array.isArray(here["enum"])) return here["enum"][0];
    if ("default" in here) return here["default"];
    const [first] = asArray(here["examples"]);
    if (first !== undefined) return first;
    switch (typeOf(here)) {
      case "object":
        return objectOf(here, depth);
      case "array":
        return arrayOf(here, name, depth);
      case "integer":
        return numberOf(here, 1);
      case "number":
        return numberOf(here, 0);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return stringOf(here, name);
    }
  }

  /** References followed, allOf merged, of anyOf and oneOf the first that is not null. */
  function resolved(given: unknown, hops = 0): Schema {
    if (hops > MAX_DEPTH || ++steps > MAX_STEPS) return {};
    const { $ref, allOf, anyOf, oneOf, ...rest } = asObject(given);
    const next = (each: unknown) => resolved(each, hops + 1);
    const first = (choices: unknown) => asArray(choices).map(next).sort((a, b) => Number(typeOf(a) === "null") - Number(typeOf(b) === "null")).slice(0, 1);
    const referred = typeof $ref === "string" ? [next(pointer($ref))] : [];
    return [rest, ...referred, ...asArray(allOf).map(next), ...first(anyOf), ...first(oneOf)].reduce<Schema>((all, part) => ({
      ...all,
      ...part,
      properties: { ...asObject(all["properties"]), ...asObject(part["properties"]) },
      required: [...asArray(all["required"]), ...asArray(part["required"])],
    }), {});
  }

  /** `#/$defs/City`, as JSON Pointer says. */
  function pointer(ref: string): unknown {
    const steps = ref.replace(/^#\/?/, "").split("/").filter(Boolean).map((step) => step.replace(/~1/g, "/").replace(/~0/g, "~"));
    return steps.reduce<unknown>((at, step) => asObject(at)[step], schema);
  }

  /** The required properties; all of them if none is required, so that there is something to see. */
  function objectOf(here: Schema, depth: number): Record<string, unknown> {
    const properties = asObject(here["properties"]);
    const required = asArray(here["required"]).map(String);
    const wanted = required.length > 0 ? new Set(required) : depth < 3 ? Object.keys(properties) : [];
    return depth > MAX_DEPTH ? {} : Object.fromEntries([...wanted].map((name) => [name, example(properties[name], name, depth + 1)]));
  }

  function arrayOf(here: Schema, name: string, depth: number): unknown[] {
    const prefix = asArray(here["prefixItems"]);
    const wanted = Math.max(asCount(here["minItems"]) ?? 0, prefix.length, depth < MAX_DEPTH ? 1 : 0);
    const length = Math.min(wanted, asCount(here["maxItems"]) ?? MAX_ITEMS, MAX_ITEMS);
    const items = Array.from({ length }, (_, index) => example(prefix[index] ?? here["items"], name, depth + 1));
    if (here["uniqueItems"] !== true) return items;
    return items.map((item, index) => (index === 0 ? item : typeof item === "number" ? item + index : typeof item === "string" ? `${item}${index}` : item));
  }

  function stringOf(here: Schema, name: string): string {
    const known = BY_FORMAT[String(here["format"])];
    if (known !== undefined) return known;
    const text = BY_NAME[name.toLowerCase()] ?? (question.trim().slice(0, 60) || "example");
    const pattern = asString(here["pattern"]);
    const chosen = pattern === undefined ? text : (FOR_PATTERN.find((candidate) => matches(pattern, candidate)) ?? text);
    return chosen.padEnd(Math.min(MAX_STRING, asCount(here["minLength"]) ?? 0), "x").slice(0, asCount(here["maxLength"]) ?? MAX_STRING);
  }
}

/** The lowest number from 1 on that is allowed, or the highest below that; `step` is 1 for integers. */
function numberOf(here: Schema, step: number): number {
  const bound = (name: string) => (typeof here[name] === "number" ? here[name] : undefined);
  const multiple = bound("multipleOf") ?? step;
  const above = bound("exclusiveMinimum");
  const below = bound("exclusiveMaximum");
  const highest = bound("maximum") ?? (below === undefined ? Infinity : below - (multiple || 0.5));
  const lowest = bound("minimum") ?? (above === undefined ? -Infinity : above + (multiple || Math.min(0.5, (highest - above) / 2)));
  const value = Math.max(Math.min(1, highest), lowest);
  if (multiple === 0) return value;
  const rounded = Math.ceil(value / multiple) * multiple;
  return rounded <= highest ? rounded : Math.floor(highest / multiple) * multiple;
}

function typeOf(here: Schema): unknown {
  const { type } = here;
  if (Array.isArray(type)) return type.find((each) => each !== "null") ?? "null";
  if (type !== undefined) return type;
  if (Object.keys(asObject(here["properties"])).length > 0) return "object";
  return here["items"] !== undefined || here["prefixItems"] !== undefined ? "array" : undefined;
}

/** A pattern that the engine cannot read matches nothing. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return false;
  }
}
