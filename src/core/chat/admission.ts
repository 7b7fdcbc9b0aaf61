// Who may ask, and how much: the first steps of a request, which look at no more than its headers.
import type { Caller } from "../accounts/keyring.ts";
import type { AdmissionDecision } from "../accounts/limiter.ts";
import type { Exchange } from "../http/exchange.ts";
import { ApiError } from "../openai/errors.ts";
import type { ConfigSnapshot } from "./context.ts";

const SOON = { headers: { "Retry-After": "1" } };

/** Refuses a request beyond what this process has room for. Throws the 503. */
export function refuseOverload({ config }: ConfigSnapshot, inFlight: number): void {
  if (inFlight >= config.server.max_in_flight)
    throw new ApiError("server_overloaded", "The gateway has too many requests in hand.", SOON);
}

/** Throws the 401. */
export function authenticate({ req, log }: Exchange, { keyring }: ConfigSnapshot): Caller {
  const caller = keyring.authenticate(req.headers.authorization);
  log.account = caller.account;
  log.key_id = caller.keyId;
  return caller;
}

/**
 * Tells the client its limits in headers (WIRE.md 4.4). Throws the 429, or the 503 of limits that
 * cannot be looked up.
 */
export function requireAdmission(
  decision: AdmissionDecision,
  caller: Caller,
  { res }: Exchange,
): void {
  const { admitted, limit, remaining, resetMs, rejectedBy } = decision;
  if (rejectedBy === "store")
    throw new ApiError("server_overloaded", "The limits cannot be looked up at the moment.", SOON);
  if (rejectedBy === "in_flight")
    throw new ApiError(
      "concurrency_limit_exceeded",
      "Concurrency limit exceeded: " +
        `this account may have ${caller.maxInFlight} requests in flight. ` +
        "Retry after 1 seconds.",
      SOON,
    );
  if (limit === null) return;
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  res.setHeader("x-ratelimit-limit-requests", limit);
  res.setHeader("x-ratelimit-remaining-requests", remaining);
  res.setHeader("x-ratelimit-reset-requests", `${seconds}s`);
  if (admitted) return;
  throw new ApiError(
    "rate_limit_exceeded",
    `Requests-per-minute limit exceeded. Retry after ${seconds} seconds.`,
    { headers: { "Retry-After": String(seconds) } },
  );
}
