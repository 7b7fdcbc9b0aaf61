// POST /try: the page's chat requests, passed on to the public listener. The page may ask only the
// address that it came from. With several processes the one that has the console serves no chat
// itself, so the request goes over the network.
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Handler } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import type { Host } from "../../scale/installation/index.ts";

/** The client's key comes in X-API-Key: Authorization is the admin's. */
export const tryHandler =
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
    const answered = once(outgoing, "response").catch((cause: unknown) => {
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
