// Answers one request: checks its head, calls its handler, and turns exceptions into error
// responses.
import { ClientGone } from "./cancel.ts";
import type { LiveExchange } from "./connection.ts";
import type { Exchange, Routes } from "./exchange.ts";
import { ApiError, type ErrorCode } from "../openai/errors.ts";
import { sendError, type RenderError } from "./responses.ts";
import { pathOf, route } from "./router.ts";

/** Throws to refuse a request. Returns true if it has answered the request itself. */
export type Guard = (exchange: Exchange) => boolean | void;

export interface RequestHooks {
  /** Renders the exceptions of handlers, of `guard` and of the server itself. */
  readonly renderError: RenderError;
  /** Receives each exception that was rendered as an internal error. */
  readonly failed: (exchange: Exchange, thrown: unknown) => void;
  /** Called for each request before its handler is looked up. Absent: all requests pass. */
  readonly guard?: Guard;
}

/** Answers one exchange. Throws only if a hook throws. */
export function answerRequest(exchange: LiveExchange, routes: Routes, hooks: RequestHooks): void {
  function handled(): void {
    exchange.handled = true;
    exchange.onHandled?.();
  }
  let answering: Promise<void>;
  try {
    answering = handle(exchange, routes, hooks) ?? Promise.resolve();
  } catch (thrown) {
    // Not answered now: Node first parses the rest of the packet, whose errors take precedence.
    answering = Promise.reject(thrown);
  }
  answering.then(handled, (thrown) => {
    answerError(exchange, thrown, hooks);
    handled();
  });
}

function handle(exchange: LiveExchange, routes: Routes, { guard }: RequestHooks) {
  const { req } = exchange;
  checkHead(exchange);
  if (guard?.(exchange)) return undefined;
  const { handler, parameter } = route(routes, req.method ?? "", pathOf(req.url ?? ""));
  return handler(exchange, parameter);
}

/** The most headers of a request. They stay in memory until its response ends. */
const MAX_HEADERS = 200;

/** Refuses heads that Node would accept, or would refuse without X-Request-Id. */
function checkHead({ req: { headers, httpVersion, rawHeaders }, res }: Exchange): void {
  /** The start of the next request is unknown, so the connection closes. */
  function close(code: ErrorCode, message: string): never {
    res.setHeader("Connection", "close");
    throw new ApiError(code, message);
  }
  if (rawHeaders.length > 2 * MAX_HEADERS)
    close("headers_too_large", `There are more than ${MAX_HEADERS} headers.`);
  // RFC 9112, section 6.1: a client or proxy of HTTP/1.0 may have framed the body otherwise.
  const coding = httpVersion === "1.1" ? "chunked" : undefined;
  if ((headers["transfer-encoding"]?.toLowerCase() ?? coding) !== coding)
    close("malformed_request", "Transfer-Encoding must be chunked, in HTTP/1.1 only.");
  if (httpVersion !== "1.1") return;
  if (rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name)).length !== 1)
    close("malformed_request", "Expected one Host header.");
  if (headers.expect !== undefined && !/\b100-continue\b/i.test(headers.expect))
    throw new ApiError("expectation_failed", "The only expectation supported is 100-continue.");
}

function answerError(exchange: LiveExchange, thrown: unknown, hooks: RequestHooks): void {
  const { req, res, requestId, cancel, log } = exchange;
  if (thrown instanceof ClientGone) return;
  const response = hooks.renderError(thrown, requestId, req);
  const { code, param, status } = response.error;
  const isInternal = code === "internal_error";
  if (cancel.reason instanceof ClientGone) {
    // Nobody gets the response, but a bug is still reported.
    if (isInternal && !isCausedBy(thrown, cancel.reason)) hooks.failed(exchange, thrown);
    return;
  }
  log.error_code = code;
  log.param = param;
  if (isInternal) hooks.failed(exchange, thrown);
  // An unfinished response is destroyed, so that the client sees that it is incomplete. A client
  // that reads an error may close before its end: that is not logged as a 499.
  if (res.headersSent) {
    if (!res.writableEnded) res.destroy();
  } else if (sendError(req, res, response)) exchange.loggedStatus = status;
}

/** Whether `reason` is the error or in its chain of causes. */
function isCausedBy(thrown: unknown, reason: unknown): boolean {
  let error = thrown;
  while (error instanceof Error && error !== reason) error = error.cause;
  return error === reason;
}
