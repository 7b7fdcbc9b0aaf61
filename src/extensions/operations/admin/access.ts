// Access to the admin listener: for requests that name it by an address, that no page of another
// site sends, and, where there is a password, those that know it.
import { timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { createLimiter } from "../../../core/accounts/limiter.ts";
import { isLoopback } from "../../../config/fields.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { sha256 } from "../../../core/hash.ts";
import type { Exchange } from "../../../core/http/exchange.ts";
import { ApiError } from "../../../core/openai/errors.ts";

/**
 * Wrong passwords from one network in a minute; after these even the right one is refused for a
 * while.
 */
const WRONG_PASSWORDS = 10;
/**
 * Wrong passwords in a minute from all networks together, but for those from which the right one
 * has come.
 */
const WRONG_PASSWORDS_OF_ALL = 100;
/** Networks from which the right password has come, as many as are remembered. */
const MAX_TRUSTED = 1_000;
/** The name of the window of all; no network has it. */
const ALL = "all";

export interface GuardOptions {
  /** Where the admin listener is, as the configuration has it. */
  readonly host: string;
  /** Absent: none is needed. */
  readonly password?: string | undefined;
}

/**
 * The returned function throws the ApiError of a request that is not allowed: 403
 * `host_not_allowed` and `origin_not_allowed`, 401 `invalid_password`, 429. `diagnose` is told when
 * a network, or all of them, are locked out. `monotonic` is the clock of that, in milliseconds.
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
 * A name in the Host header could be another site's, turned to point here. Where others reach the
 * listener, a page of another site does not know the password, so any name is accepted.
 */
function assertHost({ headers }: IncomingMessage, host: string, hasPassword: boolean): void {
  const { host: authority = "" } = headers;
  const name = authority.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  if (isIP(name) > 0 || name === "localhost" || name === host) return;
  if (hasPassword && !isLoopback(host)) return;
  throw new ApiError(
    "host_not_allowed",
    "The admin listener is asked for by its address, by 'localhost' or as admin.host has it.",
  );
}

/**
 * Requests that change something must come from the listener's own page; others may not come from
 * another site's page, unless the user has followed a link to the console.
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
    "The admin listener does this for its own page only: Origin must be its address.",
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
    const ofNetwork = { name: network, rpm: WRONG_PASSWORDS };
    const ofAll = { name: ALL, rpm: WRONG_PASSWORDS_OF_ALL };
    const limits = trusted.has(network) ? [ofNetwork] : [ofNetwork, ofAll];
    if (limits.some(({ name, rpm }) => wrong.used(name) >= rpm)) throw lockedOut();
    if (timingSafeEqual(Buffer.from(sha256(passwordIn(authorization))), digest)) {
      if (trusted.size < MAX_TRUSTED) trusted.add(network);
      return;
    }
    // A browser asks without a password first: that is no attempt.
    if (authorization === "") throw passwordNeeded();
    wrong.admit({ account: "", limits, maxInFlight: null });
    if (limits.some(({ name, rpm }) => wrong.used(name) === rpm))
      diagnose({ event: "admin_locked_out", level: "error", address: socket.remoteAddress });
    throw passwordNeeded();
  };
}

/**
 * The network that an address belongs to, as far as one subscriber has all of it. Of IPv6 the /64,
 * because one subscriber has at least that many addresses; of IPv4, also where it is mapped into
 * IPv6, the address. `address` is as Node has it: in its shortest form.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/s, "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (!bare.includes(":")) return bare;
  const [before = [], after = []] = bare.split("::").map((part) => part.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => "0");
  return `${[...before, ...zeros, ...after].slice(0, 4).join(":")}::/64`;
}

/** The password of Basic authentication, whatever the user name. */
const passwordIn = (authorization: string): string =>
  Buffer.from(/^Basic +(\S+) *$/i.exec(authorization)?.[1] ?? "", "base64")
    .toString()
    .replace(/^[^:]*:/, "");

const lockedOut = (): ApiError =>
  new ApiError("rate_limit_exceeded", "Too many wrong passwords. Retry after 60 seconds.", {
    headers: { "Retry-After": "60" },
  });

const passwordNeeded = (): ApiError =>
  new ApiError("invalid_password", "This needs admin.password, whatever the user name.", {
    headers: { "WWW-Authenticate": 'Basic realm="chat-gateway", charset="UTF-8"' },
  });
