// Keys on the operator's page: paths of the admin listener that list, make and revoke them.
import type { Extension } from "../../../core/extension/installer.ts";
import { once } from "../../scale/installation/index.ts";
import { keyRoutes } from "./routes.ts";

export const extension: Extension = {
  name: "admin-keys",
  install: (gateway) => gateway.on(once, (host) => ({ adminRoutes: keyRoutes(host) })),
};
