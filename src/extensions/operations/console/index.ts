// The console: a page for a browser on the admin listener, one file without a network of its own.
// The figures that it shows are those of the extension `history`.
import type { Installer } from "../../../core/extension/installer.ts";
import { once } from "../../scale/installation/index.ts";
import { eventsHandler } from "./events.ts";
import { page } from "./page.ts";
import { tryHandler } from "./try.ts";

export function install(gateway: Installer): void {
  gateway.on(once, (host) => ({
    adminRoutes: {
      "/": {
        GET({ res }) {
          res.writeHead(200, page.headers).end(page.text);
        },
      },
      "/events": { GET: eventsHandler(host) },
      "/try": { POST: tryHandler(host) },
    },
  }));
}
