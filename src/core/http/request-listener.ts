// One request from its parsed head to its handler, and whatever that throws to an error response.
import type { IncomingMessage } from "node:http";
import { ClientGone } from "./cancel.ts";
import type { LiveExchange } from "./connection.ts";
import type { Exchange, Routes } from "./exchange.ts";
import { ApiError } from "../openai/errors.ts";
import { sendError, type RenderError } from "./responses.ts";
import { pathOf, route } from "./router.ts";

/** Throws to refuse a request. Returns true if it has answered the request itself. */
export type Guard = (exchange: Exchange) => boolean | void;

export interface RequestHooks {
  /** Renders what a handler, `guard` or the server itself throws. */
  readonly renderError: RenderError;
  /** Receives what was thrown if it was rendered as an internal error. */
  readonly failed: (exchange: Exchange, thrown: unknown) => void;
  /** Called before the handler of each request is looked for. Absent: all are let in. */
  readonly guard?: Guard;
}

/** Answers one exchange. Never throws, unless a hook does. */
export function answerRequest(exchange: LiveExchange, routes: Routes, hooks: RequestHooks): void {
  function handled(): void {
    exchange.handled = true;
    exchange.onHandled?.();
  }
  let answering: Promise<void>;
  try {
    answering = handle(exchange, routes, hooks) ?? Promise.resolve();
  } catch (thrown) {
    // Requests in the same packet are parsed first: an error in them takes precedence over this
    // one.
    answering = Promise.reject(thrown);
  }
  answering.then(handled, (thrown) => {
    answerError(exchange, thrown, hooks);
    handled();
  });
}

function handle(exchange: LiveExchange, routes: Routes, { guard }: RequestHooks) {
  const { req } = exchange;
  checkHead(req);
  if (guard?.(exchange)) return undefined;
  const { handler, parameter } = route(routes, req.method ?? "", pathOf(req.url ?? ""));
  return handler(exchange, parameter);
}

/** Headers of a request. Each takes memory for as long as its answer does. */
const MAX_HEADERS = 200;

/** After a request that is not understood, nobody knows where the next one begins. */
const CLOSE = { headers: { Connection: "close" } };

/** What Node would refuse by itself, without X-Request-Id, or would take. */
function checkHead({ headers, httpVersion, rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length > 2 * MAX_HEADERS)
    throw new ApiError("headers_too_large", `There are more than ${MAX_HEADERS} headers.`, CLOSE);
  if (!/^chunked$/i.test(headers["transfer-encoding"] ?? "chunked"))
    throw new ApiError("malformed_request", "Transfer-Encoding must be chunked.", CLOSE);
  if (httpVersion !== "1.1") return;
  if (rawHeaders.filter((name, at) => at % 2 === 0 && /^host$/i.test(name)).length !== 1)
    throw new ApiError("malformed_request", "Expected one Host header.", CLOSE);
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
    // The client has left and gets no answer, but a bug is reported.
    if (isInternal && !isCausedBy(thrown, cancel.reason)) hooks.failed(exchange, thrown);
    return;
  }
  log.error_code = code;
  log.param = param;
  if (isInternal) hooks.failed(exchange, thrown);
  if (res.headersSent) {
    // Unless the handler has ended the response, the client must see that it is cut.
    if (!res.writableEnded) res.destroy();
    return;
  }
  // The client may close before the end of this response, which it has seen nevertheless.
  if (status === 413) exchange.loggedStatus = 413;
  sendError(req, res, response);
}

/** Whether an error is a consequence of the reason for which the work was ended. */
function isCausedBy(thrown: unknown, reason: unknown): boolean {
  let error = thrown;
  while (error instanceof Error && error !== reason) error = error.cause;
  return error === reason;
}
