// Converts JSON Schemas to the form that Anthropic demands for structured replies: closes objects,
// and moves bounds, which it refuses, into descriptions.
import { isObject } from "../../../core/schema/checker.ts";

/** The keywords that Anthropic refuses. */
const BOUNDS = new Set([
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "pattern",
  "minItems",
  "maxItems",
  "uniqueItems",
]);
/** Keywords whose value is data, not a schema. */
const DATA = new Set(["enum", "const", "default", "examples"]);
/** Keywords whose value has schemas by name. The names may equal keywords. */
const SCHEMAS_BY_NAME = new Set(["properties", "$defs", "definitions"]);

/**
 * The schema in this form. Undefined: it has an object with arbitrary names, which Anthropic cannot
 * express: a closed one could only be empty.
 */
export function closedSchema(schema: unknown): unknown {
  let hasMap = false;

  function closed(node: unknown): unknown {
    if (Array.isArray(node)) return node.map(closed);
    if (!isObject(node)) return node;
    hasMap ||= isMap(node);
    const entries = Object.entries(node);
    const bounds = entries.filter(isBound).map((bound) => bound.join(": "));
    const kept = entries.filter((entry) => !isBound(entry));
    const members = Object.fromEntries(kept.map(([name, value]) => [name, member(name, value)]));
    if (bounds.length > 0)
      members["description"] = [members["description"] ?? [], bounds].flat().join("; ");
    const describesObject = [members["type"]].flat().includes("object");
    return describesObject ? { ...members, additionalProperties: false } : members;
  }

  function member(keyword: string, value: unknown): unknown {
    if (DATA.has(keyword)) return value;
    if (!SCHEMAS_BY_NAME.has(keyword) || !isObject(value)) return closed(value);
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closed(part)]));
  }

  const whole = closed(schema);
  return hasMap ? undefined : whole;
}

const isBound = ([name, value]: [string, unknown]): boolean =>
  BOUNDS.has(name) && typeof value !== "object";

/** Whether a schema describes an object with arbitrary names. */
function isMap({ properties, additionalProperties: others }: Record<string, unknown>): boolean {
  const isAny = others === true || (isObject(others) && Object.keys(others).length === 0);
  const isNamed = isObject(properties) && Object.keys(properties).length > 0;
  return isAny ? !isNamed : isObject(others) && others["not"] === undefined;
}
