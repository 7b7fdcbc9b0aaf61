// Who may use the admin listener: requests that name it by an address (a name could be another site's, turned to point here), that no page of
// another site sends, and, where there is a password, those that know it.
import { timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { createLimiter } from "../accounts/limiter.ts";
import { isLoopback, sha256 } from "../config/schema.ts";
import type { Exchange } from "../http/exchange.ts";
import { ApiError } from "../protocol/errors.ts";

const WRONG_PASSWORDS = 10; // from one address in a minute; after these even the right one is refused for a while

/** What is returned throws the ApiError for who may not: 403 `host_not_allowed` and `origin_not_allowed`, 401 `invalid_password`, 429. */
export function createGuard({
  host,
  password,
}: {
  readonly host: string;
  readonly password?: string | undefined;
}): (exchange: Exchange) => void {
  const wrong = createLimiter();
  const digest = password !== undefined && Buffer.from(sha256(password));
  return ({ req }) => {
    const {
      host: named = "",
      origin = "",
      authorization = "",
      "sec-fetch-site": site,
      "sec-fetch-mode": mode,
    } = req.headers;
    const name = named.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
    const known =
      isIP(name) > 0 || name === "localhost" || name === host || (digest && !isLoopback(host)); // of those that others reach: another site's page does not know the password
    if (!known)
      throw new ApiError(
        "host_not_allowed",
        "The admin listener is asked for by its address, by 'localhost' or as admin.host has it.",
      );
    const changes = req.method !== "GET" && req.method !== "HEAD";
    const foreign = changes
      ? origin.replace(/^https?:\/\//, "") !== named
      : site === "cross-site" && !(mode === "navigate" && req.url === "/");
    if (foreign)
      throw new ApiError(
        "origin_not_allowed",
        "The admin listener does this for its own page only: Origin must be its address.",
      );
    if (!digest) return;
    const limits = [{ name: req.socket.remoteAddress ?? "", rpm: WRONG_PASSWORDS }];
    if (wrong.used(limits[0]!.name) >= WRONG_PASSWORDS)
      throw new ApiError("rate_limit_exceeded", "Too many wrong passwords.", {
        headers: { "Retry-After": "60" },
      });
    const given = Buffer.from(/^Basic +(\S+) *$/i.exec(authorization)?.[1] ?? "", "base64")
      .toString()
      .replace(/^[^:]*:/, "");
    if (timingSafeEqual(Buffer.from(sha256(given)), digest)) return;
    if (authorization !== "") wrong.admit({ account: "", limits, maxInFlight: null });
    const headers = { "WWW-Authenticate": 'Basic realm="chat-gateway", charset="UTF-8"' };
    throw new ApiError("invalid_password", "This needs admin.password, whatever the user name.", {
      headers,
    });
  };
}
