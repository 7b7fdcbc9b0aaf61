// The console: a page for a browser on the admin listener, one file without a network of its own.
// The figures that it shows are those of the extension `history`.
import type { HostExtension, HostPart } from "../../scale/installation/index.ts";
import { createLive } from "./live.ts";
import { page } from "./page.ts";
import { tryHandler } from "./try.ts";

export const extension: HostExtension = {
  name: "console",
  startOnce(host): HostPart {
    const live = createLive(host);
    return {
      adminRoutes: {
        "/": {
          GET({ res }) {
            res.writeHead(200, page.headers).end(page.text);
          },
        },
        "/events": { GET: live.open },
        "/try": { POST: tryHandler(host.publicAddress) },
      },
    };
  },
};
