// Calls from browsers: pages of the origins that the configuration names may call the public
// listener and read its responses. A browser asks before such a call, and reads headers of each
// response (https://fetch.spec.whatwg.org, CORS protocol). Credentials are never allowed: a page
// must have a key of its own, and no cookie or certificate of the browser may take its place. For
// the same reason a page may send and read any header.
import type { Installer } from "../../../core/extension/installer.ts";
import { strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { moments } from "../../../core/extension/places.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import type { Guard } from "../../../core/http/request-listener.ts";
import { originsCheck, type Origins } from "./origins.ts";

/** Absent: no response has a header of CORS, so browsers keep them from pages of other origins. */
const cors = defineSetting("server.cors", undefined, () => strict({ origins: originsCheck }));

export const settings = [cors];

export function install(gateway: Installer): void {
  gateway.on(moments.guards, (config) => {
    const settings = cors.of(config);
    return settings && createGuard(settings.origins);
  });
}

/** The answer to the question. A key is the one header that "*" does not stand for. */
const PREFLIGHT = {
  "Access-Control-Allow-Methods": "GET, HEAD, POST",
  "Access-Control-Allow-Headers": "*, Authorization",
  // Seconds for which a browser may remember the answer. Chromium takes no more.
  "Access-Control-Max-Age": 7_200,
};

/** Adds the headers to every response, and answers the questions of browsers. */
const createGuard =
  (origins: Origins): Guard =>
  ({ req: { method, headers }, res }: Exchange) => {
    const { origin } = headers;
    if (origins !== "*") {
      res.setHeader("Vary", "Origin");
      if (origin === undefined || !origins.includes(origin)) return false;
    }
    res.setHeader("Access-Control-Allow-Origin", origins === "*" ? "*" : origin!);
    const isQuestion = headers["access-control-request-method"] !== undefined;
    if (method === "OPTIONS" && origin !== undefined && isQuestion) {
      res.writeHead(204, PREFLIGHT).end();
      return true;
    }
    // Named for browsers that do not know "*".
    res.setHeader("Access-Control-Expose-Headers", "X-Request-Id, *");
    return false;
  };
