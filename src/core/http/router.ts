// Finds the handler of a request by its path and method.
import type { Routes } from "./exchange.ts";
import { ApiError } from "../openai/errors.ts";

/** The most characters of a path in an error message. */
const MAX_SHOWN = 120;

/** The path of a URL, without the query, and without the origin that proxies put before it. */
export function pathOf(url: string): string {
  const local = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "");
  return (local || "/").replace(/[?#].*/s, "");
}

const hasParameter = (pattern: string): boolean => pattern.endsWith("}");

/**
 * Finds the route of a path; undefined if there is none. An exact path takes precedence. `pattern`
 * is the key in `routes`. `parameter` is the text that `{name}` matched, percent-decoded if
 * possible.
 */
export function match(routes: Routes, path: string) {
  if (Object.hasOwn(routes, path) && !hasParameter(path)) return { pattern: path, parameter: "" };
  for (const pattern of Object.keys(routes)) {
    if (!hasParameter(pattern)) continue;
    const prefix = pattern.slice(0, pattern.indexOf("{"));
    if (path.startsWith(prefix) && path.length > prefix.length)
      return { pattern, parameter: percentDecoded(path.slice(prefix.length)) };
  }
  return undefined;
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Finds the handler of a request, with the parameter of its path. GET's handler also serves HEAD,
 * unless there is one for HEAD. Throws an ApiError: `unknown_url`, or `method_not_allowed` with the
 * header Allow.
 */
export function route(routes: Routes, method: string, path: string) {
  const found = match(routes, path);
  if (!found) throw unknownUrl(routes, path);
  const methods = routes[found.pattern]!;
  const name = method === "HEAD" && !Object.hasOwn(methods, "HEAD") ? "GET" : method;
  const handler = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (handler) return { handler, parameter: found.parameter };
  const allowed = Object.keys(methods).flatMap((key) => (key === "GET" ? ["GET", "HEAD"] : [key]));
  const message = `This path answers ${allowed.join(" and ")} only.`;
  throw new ApiError("method_not_allowed", message, { headers: { Allow: allowed.join(", ") } });
}

/**
 * Clients often leave out /v1, write it twice, or ask for embeddings, so the message lists the
 * paths of the API. Listeners without such paths list none.
 */
function unknownUrl(routes: Routes, path: string): ApiError {
  const shown = path.length > MAX_SHOWN ? `${path.slice(0, MAX_SHOWN - 3)}...` : path;
  const paths = Object.keys(routes).filter((pattern) => pattern.startsWith("/v1/"));
  const served = paths.length > 0 ? ` What is served here: ${paths.join(", ")}.` : "";
  const text = `There is nothing at the path ${JSON.stringify(shown)}.${served}`;
  return new ApiError("unknown_url", text);
}
