// Keys that are made while the gateway runs: keys.json under data_dir, and the commands that write
// it.
import { programSlots } from "../../../command-line/command.ts";
import { configHooks, type Warning } from "../../../config/extension.ts";
import type { Config } from "../../../core/config.ts";
import { start, type Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import { COMMANDS } from "./commands.ts";
import { createdKeysIn, keysFault, watchKeys } from "./created-keys.ts";

export { createdKeysIn, createKey, keyFile, readKeys, revokeKey } from "./created-keys.ts";
export {
  checkedTerms,
  isConfigured,
  isUnread,
  keysInConfig,
  listed,
  type CreatedKey,
  type ListedKey,
} from "./schema.ts";

export function install(gateway: Installer): void {
  for (const [name, command] of Object.entries(COMMANDS))
    gateway.fill(programSlots.command(name), command);
  gateway.fill(slots.keySource, watchKeys);
  gateway.on(start, ({ config, on }) => on("report", () => keysFault(config.data_dir)));
  gateway.on(hooks.status, (faults) => ({
    keys: { fault: faults.find((fault) => fault) ?? null },
  }));
  gateway.on(configHooks.warnings, keylessAccounts);
}

/** Accounts of the configuration that have no valid key: no request can be made for them. */
function keylessAccounts({ accounts, keys, data_dir: dataDir }: Config): Warning[] {
  const served = new Set(keys.map(({ account }) => account));
  for (const { account, revoked, expires } of createdKeysIn(dataDir).byDigest.values())
    if (revoked === null && (expires === null || Date.parse(expires) > Date.now()))
      served.add(account);
  return [...accounts.keys()]
    .filter((account) => !served.has(account))
    .map((account) => ({
      path: ["accounts", account],
      message: `has no key that is valid: keys create --account ${account} makes one`,
    }));
}
