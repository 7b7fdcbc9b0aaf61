// A library for dialects: what a provider wants back with its tool calls.
export { keepingDetails } from "./kept-details.ts";
