// A first configuration: the command `init`.
import { programSlots } from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { initCommand } from "./init-command.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("init"), initCommand);
}
