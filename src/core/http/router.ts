// Which handler a request is for: by its path, then by its method.
import type { Routes } from "./exchange.ts";
import { HttpError } from "./http-error.ts";

/** Characters of a path that an error message repeats. */
const MAX_SHOWN = 120;

/** The path alone: without the query, and without the origin that a proxy's request line has. */
export function pathOf(url: string): string {
  const local = url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "");
  return (local || "/").replace(/[?#].*/s, "");
}

export interface RouteMatch {
  /** The key of the routes. */
  readonly pattern: string;
  /** The text in the place of the parameter, percent-decoded where that is possible. */
  readonly parameter: string;
}

const hasParameter = (pattern: string): boolean => pattern.endsWith("}");

/** Finds the route of a path; undefined if there is none. An exact path takes precedence. */
export function match(routes: Routes, path: string): RouteMatch | undefined {
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
 * Finds the handler of a request, with the parameter of its path. HEAD is handled as GET where it
 * has no handler of its own. Throws an HttpError: `unknown_url`, or `method_not_allowed` with the
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
  throw new HttpError("method_not_allowed", message, { Allow: allowed.join(", ") });
}

/** Suggests the path behind common mistakes: no /v1, /v1 twice, a slash too many at the end. */
function unknownUrl(routes: Routes, path: string): HttpError {
  const bare = path.endsWith("/") ? path.slice(0, -1) : path;
  const candidates = [bare, `/v1${bare}`];
  if (bare.startsWith("/v1/v1/")) candidates.push(bare.slice(3));
  const suggestion = candidates.find((candidate) => match(routes, candidate));
  const quoted = JSON.stringify(shortened(path));
  const hint = suggestion === undefined ? "." : `; did you mean ${shortened(suggestion)}?`;
  return new HttpError("unknown_url", `There is nothing at the path ${quoted}${hint}`);
}

const shortened = (text: string): string =>
  text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 3)}...` : text;
