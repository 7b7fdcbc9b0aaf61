// Access control of the admin listener: the Host header (against DNS rebinding), the origin
// (against requests from other sites' pages), and the password, with a limit on wrong ones.
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { createLimiter } from "../../../core/accounts/limiter.ts";
import { isLoopback } from "../../../config/fields.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { sha256 } from "../../../core/hash.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";

/** Wrong passwords a minute from one network. Beyond that, even the right password is refused. */
const MAX_WRONG_OF_NETWORK = 10;
/** Wrong passwords a minute from all untrusted networks together. */
const MAX_WRONG_OF_ALL = 100;
/** The most trusted networks. A network is trusted once it has sent the right password. */
const MAX_TRUSTED = 1_000;
/** The limiter's name for all networks together. No network has this name. */
const ALL = "all";

export interface GuardOptions {
  /** The configured address of the admin listener. */
  readonly host: string;
  /** Absent: no password is needed. */
  readonly password?: string | undefined;
}

/**
 * The returned function throws an ApiError if the request is not allowed: 403 `host_not_allowed` or
 * `origin_not_allowed`, 401 `invalid_password`, or 429. It logs when a network, or all of them, are
 * locked out. `monotonic`: a clock in milliseconds.
 */
export function createGuard(
  { host, password }: GuardOptions,
  diagnose: Diagnose,
  monotonic: () => number = () => performance.now(),
): (exchange: Exchange) => void {
  const assertPassword =
    password === undefined ? undefined : createPasswordCheck(password, diagnose, monotonic);
  return ({ req }) => {
    assertHost(req, host, password !== undefined);
    assertOrigin(req);
    assertPassword?.(req);
  };
}

/**
 * Against DNS rebinding: a foreign domain could resolve to this address, and its pages would count
 * as the same origin. A listener beyond loopback accepts any name, since such a page lacks its
 * password.
 */
function assertHost({ headers }: IncomingMessage, host: string, hasPassword: boolean): void {
  const { host: authority = "" } = headers;
  const name = authority.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  if (isIP(name) > 0 || name === "localhost" || name === host) return;
  if (hasPassword && !isLoopback(host)) return;
  throw new ApiError(
    "host_not_allowed",
    "The Host header must be the admin listener's address, 'localhost' or admin.host.",
  );
}

/**
 * Requests that change something must have the listener's own origin. Other requests must not come
 * from another site's page, except the navigation when a user follows a link to the console.
 */
function assertOrigin({ headers, method, url }: IncomingMessage): void {
  const { host = "", origin = "" } = headers;
  const isReading = method === "GET" || method === "HEAD";
  const isNavigation = headers["sec-fetch-mode"] === "navigate" && url === "/";
  const isForeign = isReading
    ? headers["sec-fetch-site"] === "cross-site" && !isNavigation
    : origin.replace(/^https?:\/\//, "") !== host;
  if (!isForeign) return;
  throw new ApiError(
    "origin_not_allowed",
    "Only the admin listener's own page may do this: Origin must be its address.",
  );
}

function createPasswordCheck(
  password: string,
  diagnose: Diagnose,
  monotonic: () => number,
): (req: IncomingMessage) => void {
  const wrong = createLimiter(monotonic);
  const trusted = new Set<string>();
  const digest = Buffer.from(sha256(password));

  return ({ headers: { authorization = "" }, socket }) => {
    const network = networkOf(socket.remoteAddress ?? "");
    const ofNetwork = { name: network, rpm: MAX_WRONG_OF_NETWORK };
    const ofAll = { name: ALL, rpm: MAX_WRONG_OF_ALL };
    const limits = trusted.has(network) ? [ofNetwork] : [ofNetwork, ofAll];
    if (limits.some(({ name, rpm }) => wrong.used(name) >= rpm)) throw lockedOut();
    if (timingSafeEqual(Buffer.from(sha256(passwordIn(authorization))), digest)) {
      if (trusted.size < MAX_TRUSTED) trusted.add(network);
      return;
    }
    // A browser's first request has no password, so it does not count as a wrong one.
    if (authorization === "") throw passwordNeeded();
    wrong.admit({ account: "", limits, maxInFlight: null });
    if (limits.some(({ name, rpm }) => wrong.used(name) === rpm))
      diagnose({ event: "admin_locked_out", level: "error", address: socket.remoteAddress });
    throw passwordNeeded();
  };
}

/**
 * The network that belongs to one subscriber: for IPv6 the /64, for IPv4 (also mapped into IPv6)
 * the address itself. `address` is in its shortest form, as Node reports it.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/s, "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (!bare.includes(":")) return bare;
  const [before = [], after = []] = bare.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

/** The password in Basic credentials; the user name is ignored. "": there is none. */
const passwordIn = (authorization: string): string =>
  Buffer.from(/^Basic +(\S+) *$/i.exec(authorization)?.[1] ?? "", "base64")
    .toString()
    .replace(/^[^:]*:/, "");

const lockedOut = (): ApiError =>
  new ApiError("rate_limit_exceeded", "Too many wrong passwords. Retry after 60 seconds.", {
    headers: { "Retry-After": "60" },
  });

const passwordNeeded = (): ApiError =>
  new ApiError("invalid_password", "This needs admin.password, with any user name.", {
    headers: { "WWW-Authenticate": 'Basic realm="chat-gateway", charset="UTF-8"' },
  });
