// Which handler a request is for: by exact path, or by the longest part of a path that has a parameter at its end; then by method.
import { cut } from "../schema/checker.ts";
import { ApiError } from "../openai/errors.ts";
import type { Handler, Routes } from "./exchange.ts";

/** Characters of a path that an error repeats. */
const MAX_SHOWN = 120;

/** The path alone: without the query, and without the origin of a proxy's absolute form. */
export const pathOf = (url: string): string =>
  (url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?#]*/i, "") || "/").replace(
    /[?#].*/s,
    "",
  );

interface Match {
  /** The key of the routes. */
  readonly pattern: string;
  /** What stands in the place of the parameter, percent-decoded where that is possible. */
  readonly parameter: string;
}

const hasParameter = (pattern: string): boolean => pattern.endsWith("}");

/** The route of a path; undefined if there is none. */
export function match(routes: Routes, path: string): Match | undefined {
  if (Object.hasOwn(routes, path) && !hasParameter(path)) return { pattern: path, parameter: "" };
  for (const pattern of Object.keys(routes)) {
    if (!hasParameter(pattern)) continue;
    const prefix = pattern.slice(0, pattern.indexOf("{"));
    if (path.startsWith(prefix) && path.length > prefix.length)
      return { pattern, parameter: decoded(path.slice(prefix.length)) };
  }
  return undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The handler with its parameter, or an ApiError: 404 `unknown_url`, 405 `method_not_allowed` with Allow. HEAD is answered as GET. */
export function route(
  routes: Routes,
  method: string,
  path: string,
): { readonly handler: Handler; readonly parameter: string } {
  const found = match(routes, path);
  if (!found) throw unknownUrl(routes, path);
  const methods = routes[found.pattern]!;
  const known = method === "HEAD" && !Object.hasOwn(methods, "HEAD") ? "GET" : method;
  const handler = Object.hasOwn(methods, known) ? methods[known] : undefined;
  if (handler) return { handler, parameter: found.parameter };
  const allow = Object.keys(methods).flatMap((name) => (name === "GET" ? ["GET", "HEAD"] : [name]));
  throw new ApiError("method_not_allowed", `This path answers ${allow.join(" and ")} only.`, {
    headers: { Allow: allow.join(", ") },
  });
}

/** The usual mistakes in a client's base address: no /v1, /v1 twice, and a slash too many. */
function unknownUrl(routes: Routes, path: string): ApiError {
  const bare = path.endsWith("/") ? path.slice(0, -1) : path;
  const likely = [bare, `/v1${bare}`, bare.startsWith("/v1/v1/") ? bare.slice(3) : bare];
  const meant = likely.find((each) => match(routes, each));
  const quoted = JSON.stringify(cut(path, MAX_SHOWN));
  const hint = meant === undefined ? "." : `; did you mean ${cut(meant, MAX_SHOWN)}?`;
  return new ApiError("unknown_url", `There is nothing at the path ${quoted}${hint}`);
}
