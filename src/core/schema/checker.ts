// The schema checker: small functions that check, type and publish. One file has one concept:
// - check.ts: the contract, issues and their paths
// - typed.ts: how a check is built (for this folder only)
// - scalars.ts, containers.ts, unions.ts: values without members, with members, of one of several
//   kinds
// - modifiers.ts: absent and null fields, further rules
// - json-object.ts: objects of any shape, bounded
export * from "./check.ts";
export * from "./containers.ts";
export * from "./json-object.ts";
export * from "./modifiers.ts";
export * from "./scalars.ts";
export * from "./unions.ts";
export { isObject } from "./typed.ts";
