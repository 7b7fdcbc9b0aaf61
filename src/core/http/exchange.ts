// An exchange: a request on its way to its handler, and the answers that are one JSON document: normal ones, and every error.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import { errorBody, type ApiError } from "../openai/errors.ts";
import type { Cancel } from "./cancel.ts";

/** What a handler knows of its request, and what it tells the access log. `abort` ends the work on it; the reason, of whoever comes first, is
 * what `cancel` and the handler then meet: a ClientGone when the client has left before it had its whole answer. `expire` aborts after `ms`,
 * unless the exchange is over by then. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly requestId: string;
  readonly cancel: Cancel;
  readonly abort: (reason: Error) => void;
  readonly expire: (ms: number, reason: () => Error) => void;
  /** Calls `listener` once, when the exchange is over: the client has its whole answer, or has left. It takes the place of one before it. */
  readonly onEnd: (listener: () => void) => void;
  readonly log: LogFields;
}

/** What only the handler can tell the access log. */
export interface LogFields {
  account?: string;
  key_id?: string;
  /** The canonical name of the model that is to serve, or has served. */
  model?: string;
  /** The model or alias that the client named. */
  model_requested?: string;
  provider?: string | null;
  /** `estimated`, where the provider gave no figures. */
  usage_source?: string;
  prompt_tokens?: number;
  completion_tokens?: number;
  /** A decimal number, exact. */
  cost?: string;
  currency?: string;
  error_code?: string;
  /** The path of the request field that is to blame. */
  param?: string | null;
}

/** `parameter`: what stands in the place of the path's parameter; empty where the path has none. */
export type Handler = (exchange: Exchange, parameter: string) => void | Promise<void>;
/** By path, then by method. A path that ends in `{name}` takes any other end, slashes included. */
export type Routes = { readonly [path: string]: { readonly [method: string]: Handler } };

const LINGER_MS = 2_000; // how long a refused body is read and thrown away so that the client gets to see the refusal

/** `res` already carries X-Request-Id. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  res
    .writeHead(status, {
      "Content-Type": "application/json",
      "Content-Length": Buffer.byteLength(text),
      ...headers,
    })
    .end(text);
}

/** The headers of a document with which its connection ends. */
const lastHeaders = (text: string) => ({
  "Content-Type": "application/json",
  "Content-Length": Buffer.byteLength(text),
  Connection: "close",
});

/** Answers with an error, before anything else was sent. */
export function sendError(
  req: IncomingMessage,
  res: ServerResponse,
  error: ApiError,
  requestId: string,
): void {
  const text = JSON.stringify(errorBody(error, requestId));
  if (req.complete || error.status !== 413 || req.headers.expect !== undefined) {
    sendJson(res, error.status, text, error.headers);
    return;
  }
  // The client is still sending. Closing now would reset the connection and destroy the answer on its way, so the whole
  // answer goes out first and the end waits until the client is through, or for so long.
  res.writeHead(error.status, { ...error.headers, ...lastHeaders(text) }).write(text);
  setTimeout(() => res.end(), LINGER_MS).unref();
  req.on("end", () => res.end()).resume();
}

/** A whole HTTP/1.1 error answer as text, for sockets whose request Node could not parse; it closes the connection. */
export function rawError(error: ApiError, requestId: string): string {
  const body = JSON.stringify(errorBody(error, requestId));
  const headers = Object.entries({
    "X-Request-Id": requestId,
    ...lastHeaders(body),
    ...error.headers,
  });
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head}\r\n${body}`;
}
