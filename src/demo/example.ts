// A value that satisfies a JSON Schema, for the demo model's tool calls and structured replies. It covers what tool
// definitions use; of `pattern` only what a few common strings happen to match, and nothing of `not`, `if` or
// `dependentSchemas`. The schema is a client's, so all the work that it can ask for is bounded.

import { asArray, asCount, asObject, asString } from "../protocol/foreign.ts";

type Schema = Readonly<Record<string, unknown>>;

/** From this depth on what may be null is null, and from the next on optional things are left out: schemas refer to themselves. */
const NULL_DEPTH = 3;
const MAX_DEPTH = 12;
/** Characters and properties that one value may cost; then whatever is still wanted is null. */
const BUDGET = 20_000;
const MAX_STRING = 10_000;
const MAX_ITEMS = 100;

const BY_FORMAT = new Map(Object.entries({
  "date-time": "2026-01-01T12:00:00Z", date: "2026-01-01", time: "12:00:00Z", duration: "PT1H", email: "ada@example.com",
  uri: "https://example.com/", url: "https://example.com/", hostname: "example.com", ipv4: "127.0.0.1", ipv6: "::1",
  uuid: "00000000-0000-4000-8000-000000000000",
}));
const BY_NAME = new Map(Object.entries({
  city: "Oslo", location: "Oslo", place: "Oslo", country: "Norway", name: "Ada", language: "en", timezone: "Europe/Oslo", currency: "EUR",
}));
const FOR_PATTERN = ["a", "A", "0", "abc", "ABC", "123", "00:00", "2026-01-01", "EUR", "a-b", "a_b", "A1", "#000000", "+4712345678"];

/** The first `length` characters, none of them cut in half. */
export const cut = (text: string, length: number): string => (text.length <= length ? text : [...text].slice(0, length).join(""));

/** `question` fills strings that nothing else is known of. */
export function exampleOf(schema: Schema, question: string): unknown {
  let budget = BUDGET;

  /** A value that stands in the schema itself. */
  function stated(value: unknown): unknown {
    budget -= JSON.stringify(value)?.length ?? 0;
    return value ?? null;
  }

  /** `nth` is 0, or the position in a list whose items must differ. */
  function example(given: unknown, name: string, depth: number, nth: number): unknown {
    if (--budget < 0) return null;
    const here = resolved(given, depth);
    if ("const" in here) return stated(here["const"]);
    if (Array.isArray(here["enum"])) return stated(here["enum"][nth % here["enum"].length]);
    if ("default" in here && nth === 0) return stated(here["default"]);
    const shown = asArray(here["examples"])[nth];
    if (shown !== undefined) return stated(shown);
    switch (typeOf(here, depth)) {
      case "object":
        return objectOf(here, depth, nth);
      case "array":
        return arrayOf(here, name, depth);
      case "integer":
        return numberOf(here, 1, nth);
      case "number":
        return numberOf(here, 0, nth);
      case "boolean":
        return nth % 2 === 0;
      case "null":
        return null;
      default:
        return stringOf(here, name, nth);
    }
  }

  /** References followed, allOf merged, of anyOf and oneOf the one that is wanted at this depth. */
  function resolved(given: unknown, depth: number, hops = 0): Schema {
    if (hops > MAX_DEPTH || --budget < 0) return {};
    const { $ref, allOf, anyOf, oneOf, ...rest } = asObject(given);
    const next = (each: unknown) => resolved(each, depth, hops + 1);
    const one = (choices: unknown): Schema[] => {
      const all = asArray(choices).map(next);
      const wanted = all.find((each) => (typeOf(each, depth) === "null") === depth >= NULL_DEPTH) ?? all[0];
      return wanted ? [wanted] : [];
    };
    const referred = typeof $ref === "string" ? [next(pointer($ref))] : [];
    const merged: Record<string, unknown> = {};
    const properties: Record<string, unknown> = {};
    const required: unknown[] = [];
    for (const part of [rest, ...referred, ...asArray(allOf).map(next), ...one(anyOf), ...one(oneOf)]) {
      Object.assign(merged, part);
      Object.assign(properties, asObject(part["properties"]));
      for (const name of asArray(part["required"])) required.push(name);
    }
    budget -= Object.keys(properties).length + required.length;
    return { ...merged, properties, required };
  }

  /** `#/$defs/City`, as JSON Pointer says. */
  function pointer(ref: string): unknown {
    const path = ref.replace(/^#\/?/, "").split("/").filter(Boolean).map((step) => step.replace(/~1/g, "/").replace(/~0/g, "~"));
    return path.reduce<unknown>((at, step) => asObject(at)[step], schema);
  }

  /** The required properties; all of them if none is required, so that there is something to see. */
  function objectOf(here: Schema, depth: number, nth: number): Record<string, unknown> {
    const properties = asObject(here["properties"]);
    const required = asArray(here["required"]).filter((name) => typeof name === "string");
    const wanted = required.length > 0 ? new Set(required) : depth < NULL_DEPTH ? Object.keys(properties) : [];
    return depth > MAX_DEPTH ? {} : Object.fromEntries([...wanted].map((name) => [name, example(properties[name], name, depth + 1, nth)]));
  }

  function arrayOf(here: Schema, name: string, depth: number): unknown[] {
    const prefix = asArray(here["prefixItems"]);
    const wanted = Math.max(asCount(here["minItems"]) ?? 0, prefix.length, depth < MAX_DEPTH ? 1 : 0);
    const length = Math.min(wanted, asCount(here["maxItems"]) ?? MAX_ITEMS, MAX_ITEMS);
    return Array.from({ length }, (_, index) => example(prefix[index] ?? here["items"], name, depth + 1, here["uniqueItems"] === true ? index : 0));
  }

  function stringOf(here: Schema, name: string, nth: number): string {
    const known = BY_FORMAT.get(asString(here["format"]) ?? "");
    if (known !== undefined) return known;
    const text = BY_NAME.get(name.toLowerCase()) ?? (cut(question.trim(), 60) || "example");
    const pattern = asString(here["pattern"]);
    const fitting = pattern === undefined ? [] : FOR_PATTERN.filter((candidate) => matches(pattern, candidate));
    const chosen = fitting[nth] ?? `${nth === 0 ? "" : nth}${text}`;
    const padded = chosen.padEnd(Math.min(MAX_STRING, asCount(here["minLength"]) ?? 0), "x");
    budget -= padded.length;
    return cut(padded, asCount(here["maxLength"]) ?? MAX_STRING);
  }

  return example(schema, "", 0, 0);
}

/** A number within the bounds, 1 if it may be; the `nth` one where numbers must differ. `step` is 1 for integers. */
function numberOf(here: Schema, step: number, nth: number): number {
  const bound = (name: string, otherwise: number) => (typeof here[name] === "number" ? here[name] : otherwise);
  const multiple = bound("multipleOf", step);
  const [above, below] = [bound("exclusiveMinimum", -Infinity), bound("exclusiveMaximum", Infinity)];
  const [lowest, highest] = [Math.max(bound("minimum", -Infinity), above), Math.min(bound("maximum", Infinity), below)];
  const up = (value: number) => (multiple ? Math.ceil(value / multiple) * multiple : value);
  const down = (value: number) => (multiple ? Math.floor(value / multiple) * multiple : value);
  const offset = nth * (multiple || 1);
  const inside = (value: number) => Number.isFinite(value) && value >= lowest && value <= highest && value > above && value < below;
  const candidates = [up(1), up(lowest), up(lowest) + multiple, down(highest), down(highest) - multiple, (lowest + highest) / 2, lowest + 1, highest - 1, 0];
  return candidates.map((value) => value + offset).find(inside) ?? 0;
}

function typeOf(here: Schema, depth: number): unknown {
  const { type } = here;
  if (Array.isArray(type)) return type.find((each) => (each === "null") === depth >= NULL_DEPTH) ?? type[0];
  if (type !== undefined) return type;
  if (Object.keys(asObject(here["properties"])).length > 0) return "object";
  return here["items"] !== undefined || here["prefixItems"] !== undefined ? "array" : undefined;
}

/** Only patterns without groups and with few repetitions are tried: others may backtrack for ever. */
function matches(pattern: string, text: string): boolean {
  if (pattern.length > 100 || /[(|]/.test(pattern) || (pattern.match(/[*+?{]/g) ?? []).length > 4) return false;
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return false;
  }
}
