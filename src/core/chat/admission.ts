// The first steps of a request: find the caller, check its limits, read and check the body.
import type { Caller, Keyring } from "../accounts/keyring.ts";
import type { AdmissionDecision } from "../accounts/limiter.ts";
import type { Config } from "../config.ts";
import { readBody } from "../http/body.ts";
import type { Exchange } from "../http/exchange.ts";
import { ApiError, SOON } from "../openai/errors.ts";
import { isLarge, MAX_BODY_VALUES, parseText, type JsonBounds } from "../schema/large-json.ts";
import { runInTurns, runSync, type Steps } from "../turns.ts";
import type { AcceptedRequest, ChatServices } from "./context.ts";

/** Throws the 503 if this process already handles max_in_flight requests. */
export function refuseOverload({ server }: Config, inFlight: number): void {
  if (inFlight >= server.max_in_flight)
    throw new ApiError("server_overloaded", "The gateway has too many requests in flight.", SOON);
}

/**
 * Finds the caller, and names it in the access log even if its key is revoked. Throws the 401.
 * `authorization` replaces the header of that name for APIs that take the key elsewhere.
 */
export const authenticate = (
  { req, log }: Exchange,
  keyring: Keyring,
  authorization = req.headers.authorization,
): Caller =>
  keyring.authenticate(authorization, ({ account, keyId }) => {
    log.account = account;
    log.key_id = keyId;
  });

/**
 * Sets the rate limit headers (wire.md "Rate limit headers"). Throws the 429, or the 503 if the
 * limits cannot be looked up.
 */
export function requireAdmission(
  decision: AdmissionDecision,
  caller: Caller,
  { res }: Exchange,
): void {
  const { admitted, limit, remaining, resetMs, rejectedBy } = decision;
  if (rejectedBy === "store")
    throw new ApiError("server_overloaded", "The limits cannot be looked up at the moment.", SOON);
  if (rejectedBy === "in_flight") {
    const most = `this account may have ${caller.maxInFlight} requests in flight`;
    const text = `Concurrency limit exceeded: ${most}. Retry after 1 seconds.`;
    throw new ApiError("concurrency_limit_exceeded", text, SOON);
  }
  if (limit === null) return;
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  res.setHeader("x-ratelimit-limit-requests", limit);
  res.setHeader("x-ratelimit-remaining-requests", remaining);
  res.setHeader("x-ratelimit-reset-requests", `${seconds}s`);
  if (admitted) return;
  const text = `Requests-per-minute limit exceeded. Retry after ${seconds} seconds.`;
  throw new ApiError("rate_limit_exceeded", text, { headers: { "Retry-After": String(seconds) } });
}

/** The data for reading a request's body. */
type Reading = Pick<AcceptedRequest, "exchange" | "config" | "api"> &
  Pick<ChatServices, "jsonExcess">;

/**
 * Reads and checks the body. `large` in the result: later work on the request must yield to the
 * event loop. Throws or rejects with an ApiError or a ValidationError, or rejects with the reason
 * of the exchange's `cancel` if that is aborted.
 */
export const readRequest = (reading: Reading) =>
  readBody(reading.exchange, reading.config.server.max_body_bytes, (text) => {
    const large = isLarge(text);
    const steps = requestIn(text, large, reading);
    return large ? runInTurns(steps, reading.exchange.cancel) : runSync(steps);
  });

/**
 * Parses and checks a body. Not a closure of `readRequest`: V8 creates a hidden class for each
 * generator closure, which keeps its request in memory until a full garbage collection. Copying
 * these requests took a sixth of all CPU time.
 */
function* requestIn(text: string, large: boolean, reading: Reading) {
  const { exchange, config, api, jsonExcess } = reading;
  const json = yield* parsed(text, { jsonExcess, retain: exchange.retain });
  const chat = yield* api.read({ json, large }, exchange.req.headers);
  exchange.log.model_requested = chat.model;
  if (chat.tool_choice !== undefined || !chat.tools) return { chat, large };
  return { chat: { ...chat, tool_choice: config.compat.tool_choice_default }, large };
}

function* parsed(text: string, bounds: JsonBounds): Steps<unknown> {
  try {
    return yield* parseText(text, MAX_BODY_VALUES, bounds);
  } catch (error) {
    if (error instanceof RangeError)
      throw new ApiError("invalid_json", `The request body holds ${error.message}.`);
    // V8's message quotes the body, which may be secret. Only the position is repeated.
    const position = error instanceof SyntaxError ? /position \d+/.exec(error.message) : null;
    const hint = position ? ` (at ${position[0]})` : "";
    throw new ApiError("invalid_json", `The request body is not valid JSON${hint}.`);
  }
}
