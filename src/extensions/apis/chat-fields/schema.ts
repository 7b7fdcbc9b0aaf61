// The JSON Schema of a request with these fields, for /openapi.json.
import type { JsonSchema } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { chatFields } from "./fields.ts";
import rules from "./fields.json" with { type: "json" };

/** `schema`: that of the fields of the contract. */
export function schemaOf(schema: JsonSchema): JsonSchema {
  const properties = asObject(schema["properties"]);
  return {
    ...schema,
    properties: {
      ...properties,
      ...asObject(chatFields.schema["properties"]),
      functions: functionsSchema(asObject(properties["tools"])),
    },
    dependentSchemas: { ...asObject(schema["dependentSchemas"]), ...rules },
  };
}

/** That of tools, but for what is around the function of each. */
function functionsSchema({ items, ...list }: Record<string, unknown>): JsonSchema {
  return { ...list, items: asObject(asObject(items)["properties"])["function"] };
}
