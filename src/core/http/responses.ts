// Responses that are one JSON document: successes, and every error.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { ApiError } from "../openai/errors.ts";

/** Headers of a response, by name. */
type ResponseHeaders = Readonly<Record<string, string>>;

/** An error as the client gets it. */
export interface ErrorResponse {
  /** Has the status. The access log names its code and param. */
  readonly error: ApiError;
  /** Headers beside Content-Type and Content-Length. */
  readonly headers: ResponseHeaders;
  /** A JSON document. */
  readonly body: string;
}

/** Fields that are unknown are absent. */
type RequestHead = Partial<Pick<IncomingMessage, "url" | "headers">>;

/** Renders whatever was thrown. It must not throw itself. */
export type RenderError = (thrown: unknown, requestId: string, req: RequestHead) => ErrorResponse;

/**
 * How long the rest of a refused body is read and thrown away. To close at once would reset the
 * connection, and the client might never see the response.
 */
const LINGER_MS = 2_000;

const CLOSE = { Connection: "close" };

/** Sends a whole response. A body that is a string is JSON already. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: ResponseHeaders = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  res.writeHead(status, { ...documentHeaders(text), ...headers }).end(text);
}

const documentHeaders = (text: string) => ({
  "Content-Type": "application/json",
  "Content-Length": Buffer.byteLength(text),
});

/** Sends an error as the response. Nothing may have been sent before. */
export function sendError(
  req: IncomingMessage,
  res: ServerResponse,
  { error: { status }, headers, body }: ErrorResponse,
): void {
  // A client that waits for permission to send its body (Expect) will not send it now.
  const isBodyComing = !req.complete && req.headers.expect === undefined;
  if (status === 413 && isBodyComing) {
    res.writeHead(status, { ...headers, ...documentHeaders(body), ...CLOSE }).write(body);
    setTimeout(() => res.end(), LINGER_MS).unref();
    req.on("end", () => res.end()).resume();
  } else sendJson(res, status, body, headers);
}

/** A whole HTTP/1.1 response as text, for a socket whose request Node could not parse. */
export function rawError({ error, headers, body }: ErrorResponse, requestId: string): string {
  const all = { "X-Request-Id": requestId, ...documentHeaders(body), ...CLOSE, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join("")}\r\n${body}`;
}
