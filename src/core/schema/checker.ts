// The schema checker: small functions that check, type and publish. One file has one concept:
// - ahead.ts: long lists, checked in steps
// - check.ts: the contract, issues and their paths, and how a check is built
// - scalars.ts, containers.ts: values without and with members
// - modifiers.ts: absent and null fields, further rules
export * from "./ahead.ts";
export * from "./check.ts";
export * from "./containers.ts";
export * from "./modifiers.ts";
export * from "./scalars.ts";
