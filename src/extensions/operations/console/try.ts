// POST /try: the page's chat requests, passed on to the public listener. The page may ask only the
// address that it came from. With several processes the one that has the console serves no chat
// itself, so the request goes over the network.
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Exchange, Handler } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";

/**
 * The client's key comes in X-API-Key: Authorization is the admin's. `address` is that of the
 * public listener.
 */
export const tryHandler =
  (address: () => string): Handler =>
  async (exchange) => {
    const { req, res, cancel } = exchange;
    const outgoing = requestTo(new URL("/v1/chat/completions", address()), exchange);
    cancel.onAbort(() => outgoing.destroy(cancel.reason as Error));
    const answered = answerTo(outgoing).catch((cause: unknown) => {
      const unreachable = "The public listener does not answer.";
      throw cancel.reason ?? new ApiError("server_overloaded", unreachable, { cause });
    });
    // A fault of the body shows in the answer.
    pipeline(req, outgoing).catch(() => undefined);
    const answer = await answered;
    res.writeHead(answer.statusCode!, answer.headers);
    // If one side breaks off, both are over.
    await pipeline(answer, res).catch(() => undefined);
  };

function requestTo(url: URL, { req, requestId }: Exchange): http.ClientRequest {
  const headers = {
    Authorization: `Bearer ${String(req.headers["x-api-key"])}`,
    "Content-Type": "application/json",
    "X-Request-Id": requestId,
  };
  // The certificate is this gateway's own.
  const options = { method: "POST", headers, rejectUnauthorized: false };
  return (url.protocol === "https:" ? https : http).request(url, options);
}

const answerTo = (outgoing: http.ClientRequest): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    outgoing.once("response", resolve).once("error", reject);
  });
