// Rewrites the schema of a tool's parameters for Kimi. Moonshot rejects a request if its validator
// (github.com/MoonshotAI/walle) rejects the schema of one tool. The rewritten schema accepts the
// same values, or more if the validator's keywords cannot express it: tools check their input.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { objectSchema } from "./tool-schema.ts";

type Schema = Readonly<Record<string, unknown>>;

/** The most characters that may be copied because several alternatives share them. */
const MAX_REPEATED = 100_000;

const TYPES: readonly unknown[] = "null boolean object array number integer string".split(" ");
/** Keywords that may stand beside `anyOf`, also if the alternatives have them. */
const TEXTS = "description title".split(" ");
/** Keywords that may stand there unless the alternatives have them. */
const NOTES = [...TEXTS, ..."default examples $schema $id".split(" ")];

interface Writing {
  /** How many characters may still be copied. */
  budget: number;
}

/** Returns the value of a keyword as it is sent. Undefined: the keyword is left out. */
type Writer = (value: unknown, writing: Writing) => unknown;

const isObject = (value: unknown) => typeof value === "object" && value !== null;
const map: Writer = (value, writing) => {
  // The validator rejects even a property with the name `$ref`.
  const parts = Object.entries(asObject(value)).filter(([name]) => name !== "$ref");
  return Object.fromEntries(parts.map(([name, part]) => [name, schemaOf(part, writing)]));
};
const list: Writer = (value, writing) =>
  asArray(value).length > 0 ? asArray(value).map((part) => schemaOf(part, writing)) : undefined;
const part: Writer = (value, writing) =>
  isObject(value) || typeof value === "boolean" ? schemaOf(value, writing) : undefined;
const names: Writer = (value) =>
  Array.isArray(value)
    ? value.filter((name) => typeof name === "string" && name !== "$ref")
    : undefined;

const WRITERS = new Map<string, Writer>([
  ...["properties", "patternProperties", "dependentSchemas"].map((name) => [name, map] as const),
  ...["anyOf", "oneOf", "allOf", "prefixItems"].map((name) => [name, list] as const),
  ...["items", "not", "if", "then", "else", "contains"].map((name) => [name, part] as const),
  ["additionalProperties", (value, all) => (typeof value === "boolean" ? value : part(value, all))],
  ["type", typeOf],
  ["required", names],
  ["description", asString],
  ["enum", (value) => (asArray(value).length > 0 ? value : undefined)],
  // No reference leads to a definition any more. One that is left refers to nothing.
  ...["$ref", "$defs", "definitions"].map((name) => [name, () => undefined] as const),
]);

/**
 * The schema, which has no references, in keywords that Kimi's validator accepts: an object,
 * without `anyOf` at its top.
 */
export function kimiSchema(inlined: Schema): Schema {
  const flat = inlined["anyOf"] ? objectSchema(inlined) : inlined;
  return schemaOf({ ...flat, type: "object" }, { budget: MAX_REPEATED });
}

function schemaOf(node: unknown, writing: Writing): Schema {
  if (node === false) return { not: {} };
  const own = Array.isArray(node) ? {} : asObject(node);
  if (asArray(own["anyOf"]).length > 0) return withAlternatives(own, writing);
  const written: [string, unknown][] = [];
  for (const [stated, value] of Object.entries(own)) {
    const name = stated === "items" && Array.isArray(value) ? "prefixItems" : stated;
    const writer = WRITERS.get(name);
    const member = writer ? writer(value, writing) : value;
    if (member !== undefined) written.push([name, member]);
  }
  return withType(withProperties(Object.fromEntries(written)));
}

function notesOf(node: Schema, others: readonly unknown[] = []): Schema {
  const isFree = (name: string) => !others.some((other) => Object.hasOwn(asObject(other), name));
  const isNote = ([name]: readonly [string, unknown]) =>
    NOTES.includes(name) && (TEXTS.includes(name) || isFree(name));
  return Object.fromEntries(Object.entries(node).filter(isNote));
}

function typeOf(value: unknown): unknown {
  const types = [value].flat().filter((type) => TYPES.includes(type));
  return Array.isArray(value) && types.length > 0 ? types : types[0];
}

/** Whether `repeated` may be copied `times` times. Takes its characters off the budget. */
function canRepeat(repeated: unknown, times: number, writing: Writing): boolean {
  if (writing.budget >= 0) writing.budget -= JSON.stringify(repeated).length * times;
  return writing.budget >= 0;
}

/** Copies the keywords beside `anyOf` into each alternative. */
function withAlternatives(own: Schema, writing: Writing): Schema {
  const { anyOf, ...others } = own;
  const forms = asArray(anyOf);
  const isShared = ([name]: readonly [string, unknown]) => !NOTES.includes(name);
  const shared = Object.fromEntries(Object.entries(others).filter(isShared));
  const isAlone = Object.keys(shared).length === 0;
  if (!isAlone && !canRepeat(shared, forms.length - 1, writing)) return schemaOf(others, writing);
  const written = forms.map((form) => schemaOf(joined(shared, form), writing));
  return { ...schemaOf(notesOf(own, forms), writing), anyOf: written };
}

/** An alternative, together with the keywords that it shares with the others. */
function joined(shared: Schema, form: unknown): unknown {
  const own = asObject(form);
  const type = own["type"] ?? shared["type"];
  const isOther = JSON.stringify(type) !== JSON.stringify(shared["type"] ?? type);
  if (form === false || isOther) return form;
  const properties = { ...asObject(shared["properties"]), ...asObject(own["properties"]) };
  const required = [...asArray(shared["required"]), ...asArray(own["required"])];
  return {
    ...shared,
    ...own,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required: [...new Set(required)] }),
  };
}

/** Declares required properties that the schema does not list. */
function withProperties(node: Schema): Schema {
  const properties = asObject(node["properties"]);
  const required = asArray(node["required"]) as readonly string[];
  const missing = required.filter((name) => !Object.hasOwn(properties, name));
  if (missing.length === 0) return node;
  const added = Object.fromEntries(missing.map((name) => [name, {}]));
  return { ...node, properties: { ...properties, ...added } };
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

const isOf = (value: unknown, type: string): boolean =>
  kindOf(value) === type || (type === "number" && typeof value === "number");

/** Adds the type of the values of `enum`, or splits them into alternatives of one type each. */
function withType(node: Schema): Schema {
  const { enum: stated, type } = node;
  const values = asArray(stated);
  if (values.length === 0) return node;
  if (typeof type === "string" && values.every((value) => isOf(value, type))) return node;
  const kinds = new Set(values.map(kindOf));
  if (kinds.has("number")) kinds.delete("integer");
  const [one = "null", ...more] = [...kinds].filter((kind) => kind !== "null");
  if (kinds.size === 1) return { ...node, type: one };
  const isPlain = more.length === 0 && one !== "object" && one !== "array";
  if (isPlain && kinds.has("null")) return { ...node, type: [one, "null"] };
  const ofKind = (kind: string) => values.filter((value) => isOf(value, kind));
  const forms = [...kinds].map((kind) => ({ type: kind, enum: ofKind(kind) }));
  return { ...notesOf(node), anyOf: forms };
}
