// GET /events: what is so at the moment, to every open page as a server-sent event. Models and
// aliases are sent only when they are other than in the event before. Figures over time are asked
// for at GET /history, as often as a page shows them.
import type { ServerResponse } from "node:http";
import type { Host, Status } from "../../scale/installation/index.ts";
import type { Exchange } from "../../../core/http/exchange.ts";

/** Others look too. More events than one in so many milliseconds tell a person nothing. */
const LEAST_MS = 2_000;

export interface Live {
  /** Opens the stream of a page. */
  open(exchange: Exchange): Promise<void>;
}

/** Events follow the looks at all processes, which the history takes every few seconds. */
export function createLive(host: Host): Live {
  const pages = new Set<ServerResponse>();
  let status: Status | undefined;
  let sentAt = -Infinity;
  let sent = "";

  function event(current: Status, isNew: boolean): string {
    const { in_flight, event_loop_delay } = current;
    return `data: ${JSON.stringify({
      time: host.clock.now(),
      address: host.publicAddress(),
      currency: host.current().currency,
      in_flight,
      event_loop_delay,
      ...(isNew && { status: current }),
    })}\n\n`;
  }

  host.onLook((look) => {
    status = look.status;
    const now = host.clock.monotonic();
    if (pages.size === 0 || now - sentAt < LEAST_MS) return;
    sentAt = now;
    const lasting = lastingOf(status);
    const text = event(status, lasting !== sent);
    sent = lasting;
    for (const page of pages) if (!page.writableNeedDrain) page.write(text);
  });

  return {
    async open({ req, res, cancel }) {
      const { status: current } = status ? { status } : await host.look();
      const headers = {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
      };
      res.writeHead(200, headers).write(event(current, true));
      if (req.method === "HEAD") {
        res.end();
        return;
      }
      pages.add(res);
      cancel.onAbort(() => {
        pages.delete(res);
        res.end();
      });
    },
  };
}

/** What does not change with each look. */
const lastingOf = (status: Status): string =>
  JSON.stringify({ ...status, in_flight: 0, event_loop_delay: null, usage: asideFromLag(status) });

const asideFromLag = ({ usage }: Status): object => ({ ...(usage as object), lag_seconds: null });
