// A library for messages-api: checks requests of the Messages API, and translates them.
export { GATEWAY_SIGNATURE, signatureWith } from "./native-body.ts";
export { countRequest, messagesRequest } from "./schema.ts";
export { DIALECT, readCountRequest, readRequest } from "./request.ts";
