// The parameters of a tool for models that refuse some schemas, and with them the whole request:
// Claude and Nova those with alternatives at the top. Gemini and many compatible servers accept
// all, Kimi few.
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

const REFERENCE = /^#\/(\$defs|definitions)\/([^/]+)$/;

/** What a reference such as `#/$defs/Cat` means in the schema `root`. Undefined: nothing. */
export function resolved(reference: unknown, root: Record<string, unknown>): unknown {
  const [, section = "", name = ""] = REFERENCE.exec(asString(reference) ?? "") ?? [];
  return asObject(root[section])[name];
}
