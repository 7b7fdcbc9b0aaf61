// Keys that are made while the gateway runs: keys.json under data_dir, and the commands that write
// it.
import { programSlots } from "../../../command-line/command.ts";
import { configMoments } from "../../../config/extension.ts";
import { start, type Extension } from "../../../core/extension/installer.ts";
import { moments, slots } from "../../../core/extension/places.ts";
import { COMMANDS } from "./commands.ts";
import { createdKeysIn, keysFault, watchKeys } from "./created-keys.ts";
import { keylessAccounts } from "./warnings.ts";

export {
  createdKeysIn,
  createKey,
  keyBudget,
  keyFile,
  readKeys,
  revokeKey,
  type CreatedKey,
} from "./created-keys.ts";
export { isDateToCome, isShownText, keysInConfig, SHOWN_TEXT, type ListedKey } from "./terms.ts";

export const extension: Extension = {
  name: "keys",
  install(gateway) {
    for (const [name, command] of Object.entries(COMMANDS))
      gateway.fill(programSlots.command(name), command);
    gateway.fill(slots.keySource, watchKeys);
    gateway.on(start, ({ config, on }) => on("report", () => keysFault(config.data_dir)));
    gateway.on(moments.status, (faults) => ({
      keys: { fault: faults.find((fault) => fault) ?? null },
    }));
    gateway.on(configMoments.warnings, (config) =>
      keylessAccounts(config, createdKeysIn(config.data_dir), Date.now()),
    );
  },
};
