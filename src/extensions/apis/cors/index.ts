// Calls from browsers (CORS, https://fetch.spec.whatwg.org): pages of the configured origins may
// call the public listener and read its responses. Credentials are never allowed: a page must have
// a key of its own, and cannot use the browser's cookies or certificates. For the same reason a
// page may send and read any header.
import type { Installer } from "../../../core/extension/installer.ts";
import { strict } from "../../../config/fields.ts";
import { repeatedIn } from "../../../config/references.ts";
import { defineSetting } from "../../../config/setting.ts";
import { hooks } from "../../../core/extension/places.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import type { Guard } from "../../../core/http/request-listener.ts";
import {
  array,
  fail,
  makeCheck,
  nonEmpty,
  refine,
  wrongType,
  type Check,
} from "../../../core/schema/checker.ts";

/** Exact origins, or all. */
type Origins = readonly string[] | "*";

/** An origin with another scheme than http and https, such as that of a browser extension. */
const OTHER_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::[0-9]{1,5})?$/;

const origin = refine(nonEmpty, (text) => {
  if (originOf(text) === text) return text;
  const example = "scheme, host and port, such as https://app.example.com";
  return fail("invalid_value", `expected an origin exactly as browsers send it: ${example}`);
});

/**
 * The origin of an address as browsers send it: in lower case, without path, credentials and
 * default port. Undefined: it has none.
 */
function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.protocol === "file:") return undefined;
  if (/^https?:$/.test(url.protocol)) return url.host.includes("*") ? undefined : url.origin;
  const other = `${url.protocol}//${url.host}`;
  return OTHER_ORIGIN.test(other) ? other : undefined;
}

const list = refine(array(origin, { min: 1 }), (origins) => {
  const [repeated] = repeatedIn(origins);
  if (repeated === undefined) return origins;
  return fail("invalid_value", "is in the list twice", [repeated]);
});

/** A list of exact origins, or `"*"`. */
const originsCheck: Check<Origins> = makeCheck(
  { anyOf: [list.schema, { enum: ["*"] }] },
  (value, all) => {
    if (value === "*") return value;
    return Array.isArray(value) ? list(value, all) : wrongType('a list of origins, or "*"', value);
  },
);

/** Absent: no response has CORS headers, so browsers hide it from pages of other origins. */
const cors = defineSetting("server.cors", undefined, () => strict({ origins: originsCheck }));

export const settings = [cors];

export function install(gateway: Installer): void {
  gateway.on(hooks.guards, (config) => {
    const settings = cors.of(config);
    return settings && createGuard(settings.origins);
  });
}

/** The answer to a preflight. "*" covers every header but Authorization. */
const PREFLIGHT = {
  "Access-Control-Allow-Methods": "GET, HEAD, POST",
  "Access-Control-Allow-Headers": "*, Authorization",
  // Seconds for which a browser may cache the answer: the most that Chromium accepts.
  "Access-Control-Max-Age": 7_200,
};

/** Adds the headers to every response, and answers preflights. */
const createGuard =
  (origins: Origins): Guard =>
  ({ req: { method, headers }, res }: Exchange) => {
    const { origin } = headers;
    if (origins !== "*") {
      res.setHeader("Vary", "Origin");
      if (origin === undefined || !origins.includes(origin)) return false;
    }
    res.setHeader("Access-Control-Allow-Origin", origins === "*" ? "*" : origin!);
    const isPreflight = headers["access-control-request-method"] !== undefined;
    if (method === "OPTIONS" && origin !== undefined && isPreflight) {
      res.writeHead(204, PREFLIGHT).end();
      return true;
    }
    // X-Request-Id is named for browsers that do not know "*".
    res.setHeader("Access-Control-Expose-Headers", "X-Request-Id, *");
    return false;
  };
