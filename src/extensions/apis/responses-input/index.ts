// A library for responses-api: its requests, checked and as chat completions.
export { readRequest, type ReplyFacts } from "./request.ts";
export { responsesRequest } from "./schema.ts";
export { freeFormInput, type ToolOrigin } from "./tools.ts";
