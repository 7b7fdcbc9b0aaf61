// Keys that are made while the gateway runs: keys.json under data_dir, and the commands that write
// it.
import type { ProgramExtension } from "../../command-line/command.ts";
import { COMMANDS } from "./commands.ts";
import { createdKeysIn, watchKeys } from "./created-keys.ts";
import { keylessAccounts } from "./warnings.ts";

export const extension: ProgramExtension = {
  name: "keys",
  commands: COMMANDS,
  openKeys: watchKeys,
  warnings: (config) => keylessAccounts(config, createdKeysIn(config.data_dir), Date.now()),
};
