// The real gateway, killed at random moments under load, and the judgement on its books.

export * from "./crash/books.ts";
export * from "./crash/clients.ts";
export * from "./crash/kills.ts";
export { notable } from "./crash/lanes.ts";
export * from "./crash/provider.ts";
export { ACCOUNTS, crashConfig } from "./crash/setup.ts";
export * from "./crash/witnesses.ts";
export { pico } from "../../scripts/reconcile/money.ts";
export { ROWS as USAGE_QUERY, USAGE_COLUMNS } from "../../scripts/reconcile/rows.ts";
