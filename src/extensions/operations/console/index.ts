// The console: a web page on the admin listener, one file that loads nothing from elsewhere. Its
// figures come from the extension `history`.
import { once as onceEmitted } from "node:events";
import http, { type ServerResponse } from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { once, type Host, type Status } from "../../scale/installation/index.ts";

export function install(gateway: Installer): void {
  gateway.on(once, (host) => ({
    adminRoutes: {
      "/": {
        async GET({ res }) {
          const { page } = await import("./page.ts");
          res.writeHead(200, page.headers).end(page.text);
        },
      },
      "/events": { GET: eventsHandler(host) },
      "/try": { POST: tryHandler(host) },
    },
  }));
}

/** The least time between two events, in milliseconds: not every collection sends one. */
const MIN_EVENT_MS = 2_000;

/**
 * GET /events: sends the current status to every open page, as server-sent events, whenever an
 * extension collects reports; `history` does so every few seconds. Pages fetch figures over time
 * from GET /history.
 */
function eventsHandler(host: Host): Handler {
  const pages = new Set<ServerResponse>();
  let sentAt = -Infinity;

  function event(status: Status): string {
    const { currency } = host.current();
    const content = { time: host.clock.now(), address: host.publicAddress(), currency, status };
    return `data: ${JSON.stringify(content)}\n\n`;
  }

  host.onStatus((collected) => {
    const now = host.clock.monotonic();
    if (pages.size === 0 || now - sentAt < MIN_EVENT_MS) return;
    sentAt = now;
    const text = event(collected.status);
    for (const page of pages) if (!page.writableNeedDrain) page.write(text);
  });

  return async ({ req, res, cancel }) => {
    const { status } = await host.collectStatus();
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
 * POST /try: forwards the page's chat requests to the public listener, because the page's
 * Content-Security-Policy allows only its own origin. The request goes over the network, because
 * with several processes the one with the console serves no chat. The client's key is in X-API-Key,
 * because the admin password is in Authorization.
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
      // Node's global agent may send the request, with its key, to a proxy from the environment.
      agent: false,
      // The address is this gateway's own, and its certificate need not name it.
      rejectUnauthorized: false,
    });
    cancel.onAbort(() => outgoing.destroy(cancel.reason as Error));
    const answered = onceEmitted(outgoing, "response").catch((cause: unknown) => {
      const unreachable = "The public listener does not answer.";
      throw cancel.reason ?? new ApiError("server_overloaded", unreachable, { cause });
    });
    // If sending the body fails, `answered` shows it: by the answer, or by its rejection.
    pipeline(req, outgoing).catch(() => undefined);
    const [answer] = (await answered) as [http.IncomingMessage];
    const { connection: _, "keep-alive": __, ...headers } = answer.headers;
    res.writeHead(answer.statusCode!, headers);
    // The pipeline destroys both sides if either fails.
    await pipeline(answer, res).catch(() => undefined);
  };
