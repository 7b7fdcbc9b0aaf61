// Calls from browsers: pages of the origins that the configuration names may call the public
// listener and read its responses.
import type { Installer } from "../../../core/extension/installer.ts";
import { strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { moments } from "../../../core/extension/places.ts";
import { createGuard } from "./guard.ts";
import { originsCheck } from "./origins.ts";

/** Absent: no response has a header of CORS, so browsers keep them from pages of other origins. */
const cors = defineSetting("server.cors", undefined, () => strict({ origins: originsCheck }));

export const settings = [cors];

export function install(gateway: Installer): void {
  gateway.on(moments.guards, (config) => {
    const settings = cors.of(config);
    return settings && createGuard(settings.origins);
  });
}
