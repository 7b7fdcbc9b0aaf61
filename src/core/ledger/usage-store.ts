export type { UsageStore } from "../../extensions/books/usage-store.ts";
export type UsageStoreOptions = object;
