// A library for messages-api: its requests, checked, as chat completions, and for providers of the
// same format.
export { OWN_SIGNATURE } from "./native-body.ts";
export { countRequest, messagesRequest } from "./schema.ts";
export { DIALECT, readCountRequest, readRequest } from "./request.ts";
