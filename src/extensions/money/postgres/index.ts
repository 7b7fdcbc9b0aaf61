// Usage records in PostgreSQL: `"usage": { "store": "postgres://..." }`.
import type { UsageStoreExtension } from "../records/index.ts";
import { createPostgresStore } from "./store.ts";

export const extension: UsageStoreExtension = {
  name: "postgres",
  store: {
    setting: "usage.store",
    scheme: /^postgres(ql)?:\/\/./,
    expected: "a PostgreSQL database (postgres://...)",
  },
  openUsageStore: createPostgresStore,
};
