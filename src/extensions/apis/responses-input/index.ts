// A library for responses-api: checks requests of the Responses API, and translates them.
export { freeFormInput } from "./free-form.ts";
export { readRequest, type ReplyFacts } from "./request.ts";
export { responsesRequest } from "./schema.ts";
export type { ToolOrigin } from "./tools.ts";
