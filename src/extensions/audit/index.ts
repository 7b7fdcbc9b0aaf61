// The proof that the books are right.
import type { Extension } from "../../core/extension/extension.ts";
import { auditCommand } from "./audit-command.ts";

export const extension: Extension = { name: "audit", commands: { audit: auditCommand } };
