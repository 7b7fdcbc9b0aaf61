// Usage records in PostgreSQL: `"usage": { "store": "postgres://..." }`.
import type { Extension } from "../../core/extension/extension.ts";
import { createPostgresStore } from "./store.ts";

export const extension: Extension = {
  name: "postgres",
  store: {
    setting: "usage.store",
    scheme: /^postgres(ql)?:\/\/./,
    expected: "a PostgreSQL database (postgres://...)",
  },
  openUsageStore: createPostgresStore,
};
