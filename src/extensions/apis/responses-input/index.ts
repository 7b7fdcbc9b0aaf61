// A library for responses-api: its requests, checked and as chat completions.
export { freeFormInput } from "./free-form.ts";
export { readRequest, type ReplyFacts } from "./request.ts";
export { responsesRequest } from "./schema.ts";
export type { ToolOrigin } from "./tools.ts";
