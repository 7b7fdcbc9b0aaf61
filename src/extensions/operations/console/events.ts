// GET /events: what is so at the moment, to every open page as a server-sent event. Figures over
// time are asked for at GET /history, as often as a page shows them.
import type { ServerResponse } from "node:http";
import type { Handler } from "../../../core/http/exchange.ts";
import type { Host, Status } from "../../scale/installation/index.ts";

/** Others look too. More events than one in so many milliseconds tell a person nothing. */
const LEAST_MS = 2_000;

/** Events follow the looks at all processes, which the history takes every few seconds. */
export function eventsHandler(host: Host): Handler {
  const pages = new Set<ServerResponse>();
  let sentAt = -Infinity;

  function event(status: Status): string {
    const { currency } = host.current();
    const content = { time: host.clock.now(), address: host.publicAddress(), currency, status };
    return `data: ${JSON.stringify(content)}\n\n`;
  }

  host.onLook((look) => {
    const now = host.clock.monotonic();
    if (pages.size === 0 || now - sentAt < LEAST_MS) return;
    sentAt = now;
    const text = event(look.status);
    for (const page of pages) if (!page.writableNeedDrain) page.write(text);
  });

  return async ({ req, res, cancel }) => {
    const { status } = await host.look();
    res.writeHead(200, {
      "Content-Type": "text/event-stream; charset=utf-8",
      "Cache-Control": "no-store",
    });
    res.write(event(status));
    if (req.method === "HEAD") {
      res.end();
      return;
    }
    pages.add(res);
    cancel.onAbort(() => {
      pages.delete(res);
      res.end();
    });
  };
}
