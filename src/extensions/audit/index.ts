// What other extensions and the program use of the audit.
export { auditBooks, type AuditResult } from "./audit.ts";
export { auditCommand } from "./audit-command.ts";
