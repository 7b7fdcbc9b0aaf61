// What accounts owe, from the usage records: statements, the trace of a request, and the admin
// listener's paths about costs.
import { programSlots } from "../../../command-line/command.ts";
import type { Extension } from "../../../core/extension/installer.ts";
import { once } from "../../scale/installation/index.ts";
import { shareBooks } from "../usage/index.ts";
import { statementCommand, traceCommand } from "./billing-commands.ts";
import { costRoutes } from "./cost-routes.ts";

export const extension: Extension = {
  name: "billing",
  install(gateway) {
    gateway.fill(programSlots.command("billing statement"), statementCommand);
    gateway.fill(programSlots.command("billing trace"), traceCommand);
    gateway.on(once, (host) => {
      const books = shareBooks(host.config, host);
      return { adminRoutes: costRoutes(books), close: books.close };
    });
  },
};
