// Converts JSON Schemas to the form that Anthropic and Amazon demand for structured replies: closes
// objects, and moves bounds, which they refuse, into descriptions.
import { isObject } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { FindLack } from "../../routing/capabilities/index.ts";
import { resolved } from "./tool-schema.ts";

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
  "minProperties",
  "maxProperties",
]);
/** The formats of texts that Anthropic knows. It refuses others. */
const FORMATS = new Set(
  "date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "),
);
/** The most nested schemas and references. */
const MAX_DEPTH = 500;
/** Keywords whose value is data, not a schema. */
const DATA = new Set(["enum", "const", "default", "examples"]);
/** Keywords whose value has schemas by name. The names may equal keywords. */
const SCHEMAS_BY_NAME = new Set(["properties", "$defs", "definitions"]);

/**
 * The schema in this form. Undefined: it has an object with arbitrary names, which Anthropic cannot
 * express, as a closed one could only be empty; or it refers to itself, which Anthropic refuses.
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
    const named = (name: string) => (name === "oneOf" && !("anyOf" in node) ? "anyOf" : name);
    const members = Object.fromEntries(
      kept.map(([name, value]) => [named(name), member(name, value)]),
    );
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
  return hasMap || isRecursive(schema) ? undefined : whole;
}

/**
 * A listener of the hook `findLack`, for the format `dialect`: drops candidates if the schema of a
 * structured reply has no such form.
 */
export const findSchemaLack =
  (dialect: string): FindLack =>
  ({ provider }, { response_format: format, native, clientPath = (path) => [...path] }) => {
    if (provider.dialect !== dialect || native?.dialect === dialect) return undefined;
    const { schema } = format?.type === "json_schema" ? format.json_schema : {};
    if (!schema || closedSchema(schema)) return undefined;
    return {
      path: clientPath(["response_format"]),
      message: "with this model each property needs a name, and no schema refers to itself",
    };
  };

const isBound = ([name, value]: [string, unknown]): boolean =>
  typeof value === "string" && name === "format"
    ? !FORMATS.has(value)
    : BOUNDS.has(name) && typeof value !== "object";

/** Whether a schema refers to itself, or is nested too deeply to tell. */
function isRecursive(root: unknown): boolean {
  const around = new Set<unknown>();
  const done = new Set<unknown>();
  const isWithinItself = (node: unknown): boolean => {
    if (typeof node !== "object" || node === null || done.has(node)) return false;
    if (around.has(node) || around.size > MAX_DEPTH) return true;
    around.add(node);
    const { $ref } = asObject(node);
    const target = $ref === "#" ? root : resolved($ref, asObject(root));
    const isFound = [target, ...Object.values(node)].some(isWithinItself);
    around.delete(node);
    done.add(node);
    return isFound;
  };
  return isWithinItself(root);
}

/** Whether a schema describes an object with arbitrary names. */
function isMap({ properties, additionalProperties: others }: Record<string, unknown>): boolean {
  const isAny = others === true || (isObject(others) && Object.keys(others).length === 0);
  const isNamed = isObject(properties) && Object.keys(properties).length > 0;
  return isAny ? !isNamed : isObject(others) && others["not"] === undefined;
}
