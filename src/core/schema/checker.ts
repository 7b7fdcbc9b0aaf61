// The schema checker. Import this file; the README of the folder describes the others.
export * from "./ahead.ts";
export * from "./check.ts";
export * from "./containers.ts";
export * from "./modifiers.ts";
export * from "./scalars.ts";
