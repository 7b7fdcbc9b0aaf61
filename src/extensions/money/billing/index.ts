// What accounts owe, from the usage records: statements, the trace of a request, and the admin
// listener's paths about costs.
import type { ProgramExtension } from "../../../command-line/command.ts";
import type { HostExtension, HostPart } from "../../scale/installation/index.ts";
import { shareBooks } from "../usage/index.ts";
import { statementCommand, traceCommand } from "./billing-commands.ts";
import { costRoutes } from "./cost-routes.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "billing",
  commands: { "billing statement": statementCommand, "billing trace": traceCommand },
  startOnce({ config, clock, diagnose, extensions }): HostPart {
    const books = shareBooks(config, { clock, diagnose, extensions });
    return { adminRoutes: costRoutes(books), close: books.close };
  },
};
