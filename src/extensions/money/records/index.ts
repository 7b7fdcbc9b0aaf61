// What everything that deals with money has in common: the lines of the spend log, usage records,
// sums of them, and the contract of the stores that keep them.
export * from "./amounts.ts";
export * from "./iso-time.ts";
export * from "./spend-lines.ts";
export * from "./store.ts";
export * from "./sums.ts";
export * from "./usage-record.ts";
