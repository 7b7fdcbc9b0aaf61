// A path and a method to a handler. Exact paths only: the gateway has no parameters in its paths.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError } from "../protocol/errors.ts";
import type { Cancel } from "./cancel.ts";

/** The client went away: nobody is left to answer. */
export class ClientGone extends Error {}

/** What a handler knows of its request, and what it tells the access log. `abort` ends the work on it; the reason, of whoever comes first, is
 * what `cancel` and the handler then meet: a ClientGone when the client has left before it had its whole answer. `expire` aborts after `ms`,
 * unless the exchange is over by then. */
export interface Exchange {
  readonly req: IncomingMessage; readonly res: ServerResponse; readonly requestId: string; readonly cancel: Cancel;
  readonly abort: (reason: Error) => void; readonly expire: (ms: number, reason: () => Error) => void;
  /** What only the handler can tell the access log: `model` is to serve, or served; `usage_source`: the usage is estimated. */
  readonly log: { account?: string; key_id?: string; model?: string; usage_source?: string };
}

export type Handler = (exchange: Exchange) => void | Promise<void>;
export type Routes = { readonly [path: string]: { readonly [method: string]: Handler } };

/** The path alone: without the query, and without the origin of a proxy's absolute form. */
export function pathOf(url: string): string {
  const target = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "") || "/";
  return target.replace(/[?#].*/s, "");
}

/** The handler, or an ApiError: 404 `unknown_url`, 405 `method_not_allowed` with Allow. HEAD is answered as GET. */
export function route(routes: Routes, method: string, path: string): Handler {
  const methods = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (!methods) throw new ApiError("unknown_url", "There is nothing at this path.");
  const handler = Object.hasOwn(methods, method) ? methods[method] : method === "HEAD" ? methods["GET"] : undefined;
  if (handler) return handler;
  const allow = Object.keys(methods).flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
  throw new ApiError("method_not_allowed", `This path answers ${allow.join(" and ")} only.`, { headers: { Allow: allow.join(", ") } });
}
