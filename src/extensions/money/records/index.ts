// The types that all extensions of this group share: the lines of the spend log, usage records,
// their sums, and the contract of usage stores.
export * from "./amounts.ts";
export * from "./iso-time.ts";
export * from "./spend-lines.ts";
export * from "./store.ts";
export * from "./sums.ts";
export * from "./usage-record.ts";
