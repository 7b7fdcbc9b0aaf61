// The proof that the books are right.
import type { ProgramExtension } from "../../command-line/command.ts";
import { auditCommand } from "./audit-command.ts";

export const extension: ProgramExtension = { name: "audit", commands: { audit: auditCommand } };
