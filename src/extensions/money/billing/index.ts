// Statements of what accounts owe, and traces of single requests, both from the usage records.
import { programSlots } from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { statementCommand, traceCommand } from "./billing-commands.ts";

export { MONTH, statementCsv } from "./statement.ts";
export { traceRequest } from "./trace.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("billing statement"), statementCommand);
  gateway.fill(programSlots.command("billing trace"), traceCommand);
}
