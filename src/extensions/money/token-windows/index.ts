// Limits of tokens per minute: a sliding window of admissions for each account and key.
export * from "./token-windows.ts";
