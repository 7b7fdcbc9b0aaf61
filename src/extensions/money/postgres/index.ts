// Usage records in PostgreSQL: `"usage": { "store": "postgres://..." }`.
import { configSlots } from "../../../config/extension.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { usageStoreSlot } from "../records/index.ts";
import { createPostgresStore } from "./store.ts";

export function install(gateway: Installer): void {
  gateway.fill(configSlots.store("usage.store"), {
    scheme: /^postgres(ql)?:\/\/./,
    expected: "a PostgreSQL database (postgres://...)",
  });
  gateway.fill(usageStoreSlot, createPostgresStore);
}
