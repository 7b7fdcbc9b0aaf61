// The console's own chat requests: its page may not ask another address than its own, so they go to the public one through here.
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Handler } from "../http/router.ts";

/** The client's key comes in X-API-Key: Authorization is the admin's. `address` is the public listener's; its certificate is our own. */
export const tryRoute = (address: () => string): Handler => async ({ req, res, requestId, cancel }) => {
  const url = new URL("/v1/chat/completions", address());
  const headers = { Authorization: `Bearer ${String(req.headers["x-api-key"])}`, "Content-Type": "application/json", "X-Request-Id": requestId };
  const outgoing = (url.protocol === "https:" ? https : http).request(url, { method: "POST", headers, rejectUnauthorized: false });
  cancel.onAbort(() => outgoing.destroy(cancel.reason as Error));
  const answered = new Promise<http.IncomingMessage>((resolve, reject) => outgoing.once("response", resolve).once("error", reject));
  pipeline(req, outgoing).catch(() => undefined); // what is wrong with it the answer says
  const answer = await answered;
  res.writeHead(answer.statusCode!, answer.headers);
  await pipeline(answer, res).catch(() => undefined); // both are over then
};
