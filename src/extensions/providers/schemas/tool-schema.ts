// The parameters of a tool for models that reject some schemas, and with them the whole request.
// Claude, Nova and OpenAI's models reject alternatives at the top, OpenAI also some patterns and
// arrays, Kimi much more (kimi-schema.ts). Gemini and many compatible servers accept every schema.
import type { Tool } from "../../../core/openai/request.ts";
import { asObject, asString } from "../../../core/schema/untrusted-json.ts";

/**
 * The schema as one object with the properties of all alternatives. A property that several of them
 * have keeps each form. Which properties belong together is left to the tool to check.
 */
export function objectSchema(schema: object | undefined): Record<string, unknown> {
  const { oneOf, anyOf, allOf, ...others } = asObject(schema);
  if (!(oneOf ?? anyOf ?? allOf)) return { ...others, type: "object" };
  const forms = new Map<string, unknown[]>();
  // The loop adds to it. It has each part once, however many references lead there.
  const parts = new Set<unknown>([schema]);
  for (const part of parts) {
    const here = asObject(part);
    for (const [name, form] of Object.entries(asObject(here["properties"]))) {
      if (!forms.has(name)) forms.set(name, []);
      forms.get(name)!.push(form);
    }
    const nested = [resolved(here["$ref"], others), here["oneOf"], here["anyOf"], here["allOf"]];
    for (const next of nested.flat()) parts.add(next);
  }
  const properties = [...forms].map(([name, all]) => [
    name,
    all.length > 1 ? { anyOf: all } : all[0],
  ]);
  return { ...others, type: "object", properties: Object.fromEntries(properties) };
}

/** The target of a reference such as `#/$defs/Cat` in `root`. Undefined: there is none. */
export function resolved(reference: unknown, root: Readonly<Record<string, unknown>>): unknown {
  const text = asString(reference) ?? "";
  if (!text.startsWith("#/")) return undefined;
  return text
    .slice(2)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>(
      (at, step) => (Object.hasOwn(asObject(at), step) ? asObject(at)[step] : undefined),
      root,
    );
}

/** The schema of a tool's parameters. Undefined: it has none. */
export type ToolSchema = Tool["function"]["parameters"];

/**
 * What regular expressions of JavaScript have and others lack: groups other than `(?:`, properties
 * of characters, references to groups, and escapes of code units.
 */
const UNPORTABLE = /\(\?(?!:)|\\[\dckpPu]/;

/** The escapes of all languages. Without them `\(?` and `\\users` would look like the others. */
const PORTABLE_ESCAPES = /\\[^\dckpPu]/gs;

const isUnportable = (pattern: unknown): boolean =>
  typeof pattern === "string" && UNPORTABLE.test(pattern.replace(PORTABLE_ESCAPES, ""));

/** Object.values is the fastest way through the many schemas of an agent's request. */
const hasPart = (node: unknown, isFound: (part: object) => boolean): boolean =>
  typeof node === "object" &&
  node !== null &&
  (isFound(node) || Object.values(node).some((part) => hasPart(part, isFound)));

const hasUnportable = (part: object): boolean => isUnportable(asObject(part)["pattern"]);

/**
 * The schema without patterns that some servers cannot read. OpenAI, DeepSeek and Kimi refuse the
 * whole request for one, as Claude Code's tools have. The tool checks its input. Names of
 * `patternProperties` stay.
 */
export const portableSchema = (schema: ToolSchema): ToolSchema =>
  hasPart(schema, hasUnportable) ? asObject(rewritten(schema, withoutUnportable)) : schema;

function withoutUnportable(node: unknown): unknown {
  const { pattern, ...others } = asObject(node);
  return isUnportable(pattern) ? others : node;
}

/**
 * The same for OpenAI's models, which also refuse alternatives at the top, a top without
 * `properties`, and arrays without `items`. Those that are added allow everything, as their absence
 * does. A reference at the top, as zod-to-json-schema writes it, becomes what it refers to.
 */
export function openaiSchema(schema: ToolSchema): ToolSchema {
  if (!schema) return schema;
  const { $ref, ...own } = schema;
  const object = objectSchema({ ...asObject(resolved($ref, schema)), ...own });
  object["properties"] ??= {};
  const isRefused = hasPart(object, (part) => hasUnportable(part) || isBareArray(part));
  const accepted = (node: unknown) => withItems(withoutUnportable(node));
  return isRefused ? asObject(rewritten(object, accepted)) : object;
}

function isBareArray(part: object): boolean {
  const { type, items } = asObject(part);
  if (items !== undefined) return false;
  return type === "array" || (Array.isArray(type) && type.includes("array"));
}

const withItems = (node: unknown): unknown =>
  isBareArray(asObject(node)) ? { ...asObject(node), items: {} } : node;

/**
 * The schema as an object with `properties`, as LM Studio demands, and with `{}` for each `true` in
 * the place of a schema, which means the same. MCP servers in Rust write `true`, and llama.cpp and
 * Ollama refuse the whole request for it.
 */
export function withObjectSchemas(schema: ToolSchema = {}): ToolSchema {
  const object = hasPart(schema, hasTrue) ? asObject(rewritten(schema, withObject)) : schema;
  if (object["type"] === "object" && object["properties"]) return object;
  return { ...object, type: "object", properties: object["properties"] ?? {} };
}

const hasTrue = (part: object): boolean => Object.values(part).includes(true);

const withObject = (node: unknown, place: Place): unknown =>
  node === true && place === "schema" ? {} : node;

/** The schema with `enum` for each `const`, which means the same. Gemini ignores `const`. */
export const withEnums = (schema: ToolSchema): ToolSchema =>
  schema && asObject(rewritten(schema, withEnum));

function withEnum(node: unknown, place: Place): unknown {
  const { const: value, ...others } = asObject(node);
  return place === "schema" && typeof value === "string" ? { ...others, enum: [value] } : node;
}

/** What stands at a place: a schema, several, data in which nothing is one, or something else. */
type Place = "schema" | "schemas" | "data" | "other";

const PLACES = new Map<string, Place>([
  ["items", "schema"],
  ...["properties", "$defs", "definitions", "prefixItems", "anyOf", "oneOf", "allOf"].map(
    (name) => [name, "schemas"] as const,
  ),
  ...["enum", "const", "default", "examples"].map((name) => [name, "data"] as const),
]);

/** A schema in which `rewrite` has replaced every part, from the outside in, but for data. */
function rewritten(
  node: unknown,
  rewrite: (node: unknown, place: Place) => unknown,
  place: Place = "schema",
): unknown {
  if (place === "data") return node;
  const here = rewrite(node, place);
  if (typeof here !== "object" || here === null) return here;
  const within = (part: unknown, name = "") =>
    rewritten(part, rewrite, place === "schemas" ? "schema" : (PLACES.get(name) ?? "other"));
  if (Array.isArray(here)) return here.map((part) => within(part));
  return Object.fromEntries(Object.entries(here).map(([name, part]) => [name, within(part, name)]));
}
