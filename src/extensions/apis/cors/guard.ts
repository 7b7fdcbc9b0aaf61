// The headers by which a browser lets a page of another origin read the gateway's responses, and
// the answer to the question that it asks before such a request (https://fetch.spec.whatwg.org,
// CORS protocol). Credentials are never allowed: a page must have a key of its own, and no cookie
// or certificate of the browser may take its place.
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Exchange } from "../../../core/http/exchange.ts";
import type { Guard } from "../../../core/http/request-listener.ts";
import type { Origins } from "./origins.ts";

/** Seconds for which a browser may remember the answer. Chromium takes no more. */
const MAX_AGE_S = 7_200;

/** The headers of a response that a page may read, beside those that every page may. */
const EXPOSED = [
  "x-request-id",
  "request-id",
  "retry-after",
  "x-ratelimit-limit-requests",
  "x-ratelimit-remaining-requests",
  "x-ratelimit-reset-requests",
  "x-should-retry",
].join(", ");

const METHODS = "GET, HEAD, POST";

/** The headers that SDKs send from a page, beside those that every page may send. */
const REQUEST_HEADERS: ReadonlySet<string> = new Set([
  "accept",
  "anthropic-beta",
  "anthropic-dangerous-direct-browser-access",
  "anthropic-version",
  "authorization",
  "content-type",
  "openai-beta",
  "openai-organization",
  "openai-project",
  "traceparent",
  "tracestate",
  "user-agent",
  "x-api-key",
  "x-request-id",
]);
/** Headers in which the official SDKs describe themselves. */
const SDK_HEADER = /^x-stainless-[a-z0-9-]{1,64}$/;

/** The response depends on these headers of the question, which caches must know. */
const PREFLIGHT_VARY = "Access-Control-Request-Method, Access-Control-Request-Headers";

/** Adds the headers to every response, and answers the questions of browsers. */
export function createGuard(origins: Origins): Guard {
  const listed: ReadonlySet<string> = new Set(origins);

  /** The value of Access-Control-Allow-Origin; undefined for an origin that is not allowed. */
  function allowedOrigin({ origin }: IncomingHttpHeaders): string | undefined {
    if (origins === "*") return "*";
    return origin !== undefined && listed.has(origin) ? origin : undefined;
  }

  return ({ req, res }: Exchange) => {
    const { headers } = req;
    if (origins !== "*") res.setHeader("Vary", "Origin");
    const allowed = allowedOrigin(headers);
    if (allowed === undefined) return false;
    res.setHeader("Access-Control-Allow-Origin", allowed);
    const isQuestion = headers["access-control-request-method"] !== undefined;
    if (req.method === "OPTIONS" && headers.origin !== undefined && isQuestion) {
      answerPreflight(headers, res);
      return true;
    }
    res.setHeader("Access-Control-Expose-Headers", EXPOSED);
    return false;
  };
}

/**
 * Headers that are not allowed are left out of the answer: the browser then refuses the request,
 * and says why.
 */
function answerPreflight(headers: IncomingHttpHeaders, res: ServerResponse): void {
  const requested = headers["access-control-request-headers"] ?? "";
  const names = new Set(requested.split(",").map((name) => name.trim().toLowerCase()));
  const allowed = [...names].filter((name) => REQUEST_HEADERS.has(name) || SDK_HEADER.test(name));
  const origin = res.getHeader("Vary");
  res.setHeader("Vary", origin === undefined ? PREFLIGHT_VARY : `${origin}, ${PREFLIGHT_VARY}`);
  res.setHeader("Access-Control-Allow-Methods", METHODS);
  if (allowed.length > 0) res.setHeader("Access-Control-Allow-Headers", allowed.join(", "));
  res.setHeader("Access-Control-Max-Age", MAX_AGE_S);
  res.writeHead(204).end();
}
