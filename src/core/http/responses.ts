// Responses that are one JSON document: successes, and every error.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { ResponseHeaders } from "./http-error.ts";

/** An error as the client gets it. */
export interface ErrorResponse {
  /** The HTTP status, as in errors.md. */
  readonly status: number;
  /** Headers beside Content-Type and Content-Length. */
  readonly headers: ResponseHeaders;
  /** A JSON document. */
  readonly body: string;
  /** For the access log. */
  readonly code: string;
  /** The path of the request field that is to blame; null if there is none. For the access log. */
  readonly param: string | null;
  /** A bug of the gateway's own, which its operator must hear of. */
  readonly isInternal: boolean;
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

/** Sends a whole response. A body that is a string is JSON already. */
export function sendJson(
  res: ServerResponse,
  status: number,
  body: unknown,
  headers: ResponseHeaders = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const head = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(text),
    ...headers,
  };
  res.writeHead(status, head).end(text);
}

/** The headers of a document after which the connection is closed. */
const closingHeaders = (text: string) => ({
  "Content-Type": "application/json",
  "Content-Length": Buffer.byteLength(text),
  Connection: "close",
});

/** Sends an error as the response. Nothing may have been sent before. */
export function sendError(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, body }: ErrorResponse,
): void {
  // A client that waits for permission to send its body (Expect) will not send it now.
  const isBodyComing = !req.complete && req.headers.expect === undefined;
  if (status !== 413 || !isBodyComing) {
    sendJson(res, status, body, headers);
    return;
  }
  res.writeHead(status, { ...headers, ...closingHeaders(body) }).write(body);
  setTimeout(() => res.end(), LINGER_MS).unref();
  req.on("end", () => res.end()).resume();
}

/** A whole HTTP/1.1 response as text, for a socket whose request Node could not parse. */
export function rawError({ status, headers, body }: ErrorResponse, requestId: string): string {
  const all = { "X-Request-Id": requestId, ...closingHeaders(body), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${body}`;
}
