// Usage records in PostgreSQL: `"usage": { "store": "postgres://..." }`.
import { configSlots } from "../../../config/extension.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { usageStoreSlot } from "../records/index.ts";
import { createPostgresStore } from "./store.ts";

export const extension: Extension = {
  name: "postgres",
  install(gateway) {
    gateway.fill(configSlots.store("usage.store"), {
      scheme: /^postgres(ql)?:\/\/./,
      expected: "a PostgreSQL database (postgres://...)",
    });
    gateway.fill(usageStoreSlot, createPostgresStore);
  },
};
