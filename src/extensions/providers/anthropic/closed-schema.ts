// JSON Schemas in the form that Anthropic demands where a reply must satisfy them: objects are
// closed, and bounds, which it refuses, are described in words.
import { isObject } from "../../../core/schema/checker.ts";

/** The keywords that it refuses. */
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
/** Keywords whose value is data and no schema. */
const DATA = new Set(["enum", "const", "default", "examples"]);
/** Keywords whose value has schemas by names. The names may be any, also those of keywords. */
const SCHEMAS_BY_NAME = new Set(["properties", "$defs", "definitions"]);

/**
 * Whether a schema has an object of any names: closed, it could only be empty. Anthropic has no
 * form for it.
 */
export function hasMap(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasMap);
  if (!isObject(schema)) return false;
  const { properties, additionalProperties: others } = schema;
  const isAny = others === true || (isObject(others) && Object.keys(others).length === 0);
  const isNamed = isObject(properties) && Object.keys(properties).length > 0;
  const isMap = isAny ? !isNamed : isObject(others) && others["not"] === undefined;
  return isMap || Object.entries(schema).some(([name, value]) => valueHasMap(name, value));
}

function valueHasMap(keyword: string, value: unknown): boolean {
  if (DATA.has(keyword)) return false;
  const isTable = SCHEMAS_BY_NAME.has(keyword) && isObject(value);
  return isTable ? Object.values(value).some(hasMap) : hasMap(value);
}

export function closedSchema(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closedSchema);
  if (typeof schema !== "object" || schema === null) return schema;
  const entries: [string, unknown][] = Object.entries(schema);
  const isBound = ([name, value]: [string, unknown]) =>
    BOUNDS.has(name) && typeof value !== "object";
  const bounds = entries.filter(isBound).map((bound) => bound.join(": "));
  const kept = entries.filter((entry) => !isBound(entry));
  const closed = Object.fromEntries(kept.map(([name, value]) => [name, closedValue(name, value)]));
  if (bounds.length > 0)
    closed["description"] = [closed["description"] ?? [], bounds].flat().join("; ");
  const describesObject = [closed["type"]].flat().includes("object");
  return describesObject ? { ...closed, additionalProperties: false } : closed;
}

function closedValue(keyword: string, value: unknown): unknown {
  if (DATA.has(keyword)) return value;
  const isTable = SCHEMAS_BY_NAME.has(keyword) && isObject(value);
  if (!isTable) return closedSchema(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, schema]) => [name, closedSchema(schema)]),
  );
}
