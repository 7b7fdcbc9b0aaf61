// The parameters of a tool for models that refuse a schema with alternatives at its top, and with
// it the whole request: Claude and Nova. OpenAI's and Gemini's accept it.
import { asArray, asObject, asString } from "../../../core/schema/untrusted-json.ts";

/**
 * The schema as one object with the properties of all alternatives. A property that several of them
 * have keeps each form. Which properties belong together is left to the tool to check.
 */
export function objectSchema(schema: object | undefined): Record<string, unknown> {
  const { oneOf, anyOf, allOf, ...others } = asObject(schema);
  const alternatives = [oneOf, anyOf, allOf].flatMap(asArray);
  const parts = [others, ...alternatives.map((part) => referred(asObject(part), others))];
  if (parts.length === 1) return { ...others, type: "object" };
  const forms = new Map<string, unknown[]>();
  for (const { properties } of parts)
    for (const [name, form] of Object.entries(asObject(properties))) {
      if (!forms.has(name)) forms.set(name, []);
      forms.get(name)!.push(form);
    }
  const properties = [...forms].map(([name, all]) => [
    name,
    all.length > 1 ? { anyOf: all } : all[0],
  ]);
  return { ...others, type: "object", properties: Object.fromEntries(properties) };
}

const REFERENCE = /^#\/(\$defs|definitions)\/([^/]+)$/;

/** A part of the schema `root`, with what it refers to: `{ "$ref": "#/$defs/Cat" }`. */
function referred(part: Record<string, unknown>, root: Record<string, unknown>) {
  const [, section = "", name = ""] = REFERENCE.exec(asString(part["$ref"]) ?? "") ?? [];
  return { ...asObject(asObject(root[section])[name]), ...part };
}
