// A first configuration: the command `init`.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { initCommand } from "./init-command.ts";

export const extension: Extension = {
  name: "init",
  install: (gateway) => gateway.fill(programSlots.command("init"), initCommand),
};
