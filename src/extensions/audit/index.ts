// The proof that the books are right.
import type { CommandExtension } from "../../command-line/command.ts";
import { auditCommand } from "./audit-command.ts";

export const extension: CommandExtension = { name: "audit", commands: { audit: auditCommand } };
