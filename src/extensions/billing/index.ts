// What accounts owe, from the usage records: statements, the trace of a request, and the admin
// listener's paths about costs.
import type { ProgramExtension } from "../../command-line/command.ts";
import type { HostExtension, HostPart } from "../installation/index.ts";
import { openBooks } from "../books/index.ts";
import { createReceipts } from "../receipts/index.ts";
import { statementCommand, traceCommand } from "./billing-commands.ts";
import { costRoutes } from "./cost-routes.ts";

export const extension: ProgramExtension & HostExtension = {
  name: "billing",
  commands: { "billing statement": statementCommand, "billing trace": traceCommand },
  startOnce({ config, clock, diagnose, extensions }): HostPart {
    const books = openBooks(config, { clock, diagnose, extensions });
    const receipts = createReceipts(books);
    return { adminRoutes: costRoutes(books, receipts), close: books.store.close };
  },
};
