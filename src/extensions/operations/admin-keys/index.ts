// Keys on the operator's page: paths of the admin listener that list, make and revoke them.
import type { Installer } from "../../../core/extension/installer.ts";
import { once } from "../../scale/installation/index.ts";
import { keyRoutes } from "./routes.ts";

export function install(gateway: Installer): void {
  gateway.on(once, (host) => ({ adminRoutes: keyRoutes(host) }));
}
