// A library for the formats of providers: JSON Schemas of tools and of structured replies in the
// forms that models accept.
export { acceptedTools } from "./accepted-tools.ts";
export { closedSchema, findSchemaLack } from "./closed-schema.ts";
export { createInliner } from "./inlined-schema.ts";
export { objectSchema, withEnums, withObjectSchemas } from "./tool-schema.ts";
