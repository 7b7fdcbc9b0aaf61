// What requests cost, for the operator's page: paths of the admin listener about the usage records.
import type { Extension } from "../../../core/extension/installer.ts";
import { shareBooks } from "../../money/usage/index.ts";
import { once } from "../../scale/installation/index.ts";
import { costRoutes } from "./cost-routes.ts";

export const extension: Extension = {
  name: "costs",
  install(gateway) {
    gateway.on(once, (host) => {
      const books = shareBooks(host.config, host);
      return { adminRoutes: costRoutes(books), close: books.close };
    });
  },
};
