// The proof that the books are complete and right, and what makes them right.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { auditCommand } from "./audit-command.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export const extension: Extension = {
  name: "audit",
  install(gateway) {
    gateway.fill(programSlots.command("audit"), auditCommand);
    gateway.fill(programSlots.command("books rebuild"), rebuildCommand);
  },
};
