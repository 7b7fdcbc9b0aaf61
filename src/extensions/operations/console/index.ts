// The console: a page for a browser on the admin listener, one file without a network of its own.
// The figures that it shows are those of the extension `history`.
import { once as onceEmitted } from "node:events";
import http, { type ServerResponse } from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { once, type Host, type Status } from "../../scale/installation/index.ts";
import { page } from "./page.ts";

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

/** Others look too. More events than one in so many milliseconds tell a person nothing. */
const LEAST_MS = 2_000;

/**
 * GET /events: what is so at the moment, to every open page as a server-sent event. Figures over
 * time are asked for at GET /history, as often as a page shows them. Events follow the looks at all
 * processes, which the history takes every few seconds.
 */
function eventsHandler(host: Host): Handler {
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

/**
 * POST /try: the page's chat requests, passed on to the public listener. The page may ask only the
 * address that it came from. With several processes the one that has the console serves no chat
 * itself, so the request goes over the network. The client's key comes in X-API-Key: Authorization
 * is the admin's.
 */
const tryHandler =
  (host: Host): Handler =>
  async ({ req, res, cancel, requestId }) => {
    const url = new URL("/v1/chat/completions", host.publicAddress());
    const outgoing = (url.protocol === "https:" ? https : http).request(url, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${String(req.headers["x-api-key"])}`,
        "Content-Type": "application/json",
        "X-Request-Id": requestId,
      },
      // The certificate is this gateway's own.
      rejectUnauthorized: false,
    });
    cancel.onAbort(() => outgoing.destroy(cancel.reason as Error));
    const answered = onceEmitted(outgoing, "response").catch((cause: unknown) => {
      const unreachable = "The public listener does not answer.";
      throw cancel.reason ?? new ApiError("server_overloaded", unreachable, { cause });
    });
    // A fault of the body shows in the answer.
    pipeline(req, outgoing).catch(() => undefined);
    const [answer] = (await answered) as [http.IncomingMessage];
    const { connection: _, "keep-alive": __, ...headers } = answer.headers;
    res.writeHead(answer.statusCode!, headers);
    // If one side breaks off, both are over.
    await pipeline(answer, res).catch(() => undefined);
  };
