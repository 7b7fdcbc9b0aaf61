// The proof that the books are complete and right, and what makes them right.
import type { ProgramExtension } from "../../../command-line/command.ts";
import { auditCommand } from "./audit-command.ts";
import { rebuildCommand } from "./rebuild-command.ts";

export const extension: ProgramExtension = {
  name: "audit",
  commands: { audit: auditCommand, "books rebuild": rebuildCommand },
};
