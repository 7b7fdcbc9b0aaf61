// The commands `audit` and `books rebuild`.
import { programSlots } from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { auditCommand } from "./audit-command.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("audit"), auditCommand);
  gateway.fill(programSlots.command("books rebuild"), rebuildCommand);
}
