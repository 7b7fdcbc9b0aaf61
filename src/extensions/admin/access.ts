// Who may use the admin listener: requests that name it by an address (a name could be another site's, turned to point here), that no page of
// another site sends, and, where there is a password, those that know it.
import { timingSafeEqual } from "node:crypto";
import { isIP } from "node:net";
import { createLimiter } from "../../core/accounts/limiter.ts";
import { isLoopback } from "../../core/config/fields.ts";
import { sha256 } from "../../core/hash.ts";
import type { Exchange } from "../../core/http/exchange.ts";
import { ApiError } from "../../core/openai/errors.ts";

/** From one network in a minute; after these even the right password is refused for a while. */
const WRONG_PASSWORDS = 10;
/** In a minute from all networks together, but for those from which the right password has come. */
const WRONG_PASSWORDS_OF_ALL = 100;
/** Networks from which the right password has come, as many as are remembered. */
const MAX_TRUSTED = 1_000;
/** The name of the window of all; no network has it. */
const ALL = "all";

/** `monotonic` is the clock of the lockout, in milliseconds. What is returned throws the ApiError for who may not: 403 `host_not_allowed` and `origin_not_allowed`, 401 `invalid_password`, 429. */
export function createGuard(
  {
    host,
    password,
  }: {
    readonly host: string;
    readonly password?: string | undefined;
  },
  monotonic?: () => number,
): (exchange: Exchange) => void {
  const wrong = createLimiter(monotonic);
  const trusted = new Set<string>();
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
    const network = networkOf(req.socket.remoteAddress ?? "");
    const own = { name: network, rpm: WRONG_PASSWORDS };
    const limits = trusted.has(network) ? [own] : [own, { name: ALL, rpm: WRONG_PASSWORDS_OF_ALL }];
    if (limits.some(({ name, rpm }) => wrong.used(name) >= rpm))
      throw new ApiError(
        "rate_limit_exceeded",
        "Too many wrong passwords. Retry after 60 seconds.",
        { headers: { "Retry-After": "60" } },
      );
    const given = Buffer.from(/^Basic +(\S+) *$/i.exec(authorization)?.[1] ?? "", "base64")
      .toString()
      .replace(/^[^:]*:/, "");
    if (timingSafeEqual(Buffer.from(sha256(given)), digest)) {
      if (trusted.size < MAX_TRUSTED) trusted.add(network);
      return;
    }
    if (authorization !== "") wrong.admit({ account: "", limits, maxInFlight: null });
    const headers = { "WWW-Authenticate": 'Basic realm="chat-gateway", charset="UTF-8"' };
    throw new ApiError("invalid_password", "This needs admin.password, whatever the user name.", {
      headers,
    });
  };
}

/** The network that a client's wrong passwords are counted for: of IPv6 the /64, because one subscriber has at least that many addresses;
 * of IPv4, also where it is mapped into IPv6, the address. */
export function networkOf(address: string): string {
  const [bare = ""] = address.split("%"); // without the zone of a link-local address
  if (isIP(bare) !== 6) return bare;
  const groups = groupsOf(bare);
  const [high, low] = groups.slice(6) as [number, number];
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = "", tail] = address.split("::");
  const before = numbersOf(head);
  if (tail === undefined) return before;
  const after = numbersOf(tail);
  const zeros = Array<number>(8 - before.length - after.length).fill(0);
  return [...before, ...zeros, ...after];
}

/** The groups that are written out; the last two may be written as an IPv4 address. */
function numbersOf(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}
