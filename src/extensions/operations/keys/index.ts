// Keys that are made while the gateway runs: keys.json under data_dir, and the commands that write
// it. The admin listener has paths for the same.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { COMMANDS } from "./commands.ts";
import type { HostExtension } from "../../scale/installation/index.ts";
import { createdKeysIn, keysFault, watchKeys } from "./created-keys.ts";
import { keyRoutes } from "./routes.ts";
import { keylessAccounts } from "./warnings.ts";

export { createdKeysIn } from "./created-keys.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "keys",
  commands: COMMANDS,
  openKeys: watchKeys,
  start: ({ config }) => ({ report: () => keysFault(config.data_dir) }),
  status: (faults) => ({ keys: { fault: faults.find((fault) => fault) ?? null } }),
  startOnce: (host) => ({ adminRoutes: keyRoutes(host) }),
  warnings: (config) => keylessAccounts(config, createdKeysIn(config.data_dir), Date.now()),
};
