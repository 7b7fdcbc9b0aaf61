// Budgets that several gateways share through the Redis or Valkey server of `limits.store`.
import type { Installer } from "../../../core/extension/installer.ts";
import { gatewayInstanceId } from "../../scale/data-files/index.ts";
import { sharedBudgetsSlot, type SharedStore, type SharingOptions } from "../budgets/index.ts";
import { onError, openStoredScript } from "../../scale/redis/index.ts";
import { createSharedStore } from "./shared-store.ts";

export function install(gateway: Installer): void {
  gateway.fill(sharedBudgetsSlot, shareBudgets);
}

/** As sharedBudgetsSlot. */
function shareBudgets(options: SharingOptions): SharedStore | undefined {
  const { config, diagnose } = options;
  const path = "extensions/money/shared-budgets/script.lua";
  const script = openStoredScript(config, "budgets", path, diagnose);
  if (!script) return undefined;
  const gatewayId = () => gatewayInstanceId(config.data_dir);
  return createSharedStore({ ...options, script, onError: onError.of(config), gatewayId });
}
