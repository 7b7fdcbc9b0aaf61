// Usage records in PostgreSQL: `"usage": { "store": "postgres://..." }`.
import { configSlots } from "../../../config/extension.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { usageStoreSlot } from "../records/index.ts";
import { createPostgresStore } from "./store.ts";

export function install(gateway: Installer): void {
  gateway.fill(configSlots.store("usage.store"), {
    // With another value of `ssl` the package `pg` throws where nothing can catch it. `sslmode`
    // takes its place.
    scheme: /^postgres(ql)?:\/\/(?!(?!.*[?&]sslmode=).*[?&]ssl=(?!(true|1|0|no-verify)?([&#]|$)))./,
    expected: "a PostgreSQL database (postgres://..., with sslmode=... for TLS)",
  });
  gateway.fill(usageStoreSlot, createPostgresStore);
}
