// What accounts owe, from the usage records: statements, and the trace of a request.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { statementCommand, traceCommand } from "./billing-commands.ts";

export { MONTH, printed, statementCsv } from "./statement.ts";
export { traceRequest } from "./trace.ts";

export const extension: Extension = {
  name: "billing",
  install(gateway) {
    gateway.fill(programSlots.command("billing statement"), statementCommand);
    gateway.fill(programSlots.command("billing trace"), traceCommand);
  },
};
