// How a running gateway is, for its operator in a terminal: the commands `status` and `top`.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { statusCommand } from "./status-command.ts";
import { topCommand } from "./top-command.ts";

export const extension: Extension = {
  name: "status",
  install(gateway) {
    gateway.fill(programSlots.command("status"), statusCommand);
    gateway.fill(programSlots.command("top"), topCommand);
  },
};
