// The console's page, and what a browser may do for it: run what stands in it, ask the address that it came from, and nothing else. So its
// chat requests go to the public address through here.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { pipeline } from "node:stream/promises";
import type { Handler } from "../../core/http/exchange.ts";
import { ApiError } from "../../core/openai/errors.ts";

/** A build of one file puts the page in here. */
declare const CONSOLE_PAGE: string;
const text =
  typeof CONSOLE_PAGE === "string"
    ? CONSOLE_PAGE
    : readFileSync(new URL("index.html", import.meta.url), "utf8");
const digestOf = (tag: string) =>
  `'sha256-${hash("sha256", new RegExp(`<${tag}>(.*)</${tag}>`, "s").exec(text)![1]!, "base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${digestOf("script")}`,
  `style-src ${digestOf("style")}`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];
export const page = {
  text,
  headers: {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": policy.join("; "),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
  },
};

/** The client's key comes in X-API-Key: Authorization is the admin's. `address` is the public listener's; its certificate is our own. */
export const tryRoute =
  (address: () => string): Handler =>
  async ({ req, res, requestId, cancel }) => {
    const url = new URL("/v1/chat/completions", address());
    const headers = {
      Authorization: `Bearer ${String(req.headers["x-api-key"])}`,
      "Content-Type": "application/json",
      "X-Request-Id": requestId,
    };
    const outgoing = (url.protocol === "https:" ? https : http).request(url, {
      method: "POST",
      headers,
      rejectUnauthorized: false,
    });
    cancel.onAbort(() => outgoing.destroy(cancel.reason as Error));
    const answered = new Promise<http.IncomingMessage>((resolve, reject) =>
      outgoing
        .once("response", resolve)
        .once("error", (cause) =>
          reject(
            cancel.reason ??
              new ApiError("server_overloaded", "The public listener does not answer.", { cause }),
          ),
        ),
    );
    pipeline(req, outgoing).catch(() => undefined); // what is wrong with it the answer says
    const answer = await answered;
    res.writeHead(answer.statusCode!, answer.headers);
    await pipeline(answer, res).catch(() => undefined); // both are over then
  };
