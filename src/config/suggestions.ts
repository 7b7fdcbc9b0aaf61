// Adds to the issues of a configuration what was most likely meant, where a field or a word of a
// fixed list is misspelt. The names come from the schema, so no value of the file is repeated.
import type { JsonSchema, ValidationIssue } from "../core/schema/checker.ts";
import { asObject } from "../core/schema/untrusted-json.ts";
import { didYouMean } from "./nearest.ts";

/** The same issues, their messages with suggestions. `json` is what was checked. */
export const withSuggestions = (
  issues: readonly ValidationIssue[],
  json: unknown,
  schema: JsonSchema,
): readonly ValidationIssue[] =>
  issues.map((issue) => ({ ...issue, message: suggested(issue, json, schema) }));

function suggested(issue: ValidationIssue, json: unknown, schema: JsonSchema): string {
  const { path, message } = issue;
  const name = path.at(-1);
  const { properties, additionalProperties } = schemaAt(schema, path.slice(0, -1));
  const known = asObject(properties);
  const isStrict = additionalProperties === false;
  if (typeof name === "string" && isStrict && !Object.hasOwn(known, name)) {
    const names = Object.keys(known);
    const question = didYouMean(name, names);
    if (question === undefined) return message;
    return `is not a known field; ${question} Known here: ${names.join(", ")}`;
  }
  const question = wordSuggestion(issue, json, schemaAt(schema, path));
  return question === undefined ? message : `${message}; ${question}`;
}

/** For a text that is none of those that its schema lists. */
function wordSuggestion(
  { path }: ValidationIssue,
  json: unknown,
  { enum: words }: JsonSchema,
): string | undefined {
  let value = json;
  for (const step of path) value = asObject(value)[step];
  if (typeof value !== "string" || !Array.isArray(words) || words.includes(value)) return undefined;
  return didYouMean(value, words as readonly string[]);
}

/** The schema of the value at a path; an empty one if there is none. */
function schemaAt(schema: JsonSchema, path: ValidationIssue["path"]): JsonSchema {
  let node = withoutNull(schema);
  for (const step of path) {
    const { properties, additionalProperties, items } = node;
    const property = asObject(properties)[step] ?? additionalProperties;
    node = withoutNull(asObject(typeof step === "number" ? items : property));
  }
  return node;
}

/** A field that may be null has the schema of its other values first. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const { anyOf } = schema;
  return Array.isArray(anyOf) ? withoutNull(asObject(anyOf[0])) : schema;
}
