// The console: a page for a browser on the admin listener, one file without a network of its own.
// The figures that it shows are those of the extension `history`.
import type { Extension } from "../../../core/extension/installer.ts";
import { once } from "../../scale/installation/index.ts";
import { eventsHandler } from "./events.ts";
import { page } from "./page.ts";
import { tryHandler } from "./try.ts";

export const extension: Extension = {
  name: "console",
  install(gateway) {
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
  },
};
