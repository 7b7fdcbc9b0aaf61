// Sends responses that are one JSON document, among them all errors.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import type { ApiError } from "../openai/errors.ts";

/** Headers of a response, by name. */
type ResponseHeaders = Readonly<Record<string, string>>;

/** The response to the client for an error. */
export interface ErrorResponse {
  /** The source of the status, and of code and param for the access log. */
  readonly error: ApiError;
  /** All headers except Content-Type and Content-Length. */
  readonly headers: ResponseHeaders;
  /** A JSON document. */
  readonly body: string;
}

/** The head of a request, or the part of it that could be parsed. */
type RequestHead = Partial<Pick<IncomingMessage, "url" | "headers">>;

/** Renders anything thrown as the response to the client. It must not throw. */
export type RenderError = (thrown: unknown, requestId: string, req: RequestHead) => ErrorResponse;

/**
 * How long the rest of a refused body is read and discarded. Closing at once would reset the
 * connection, and the client might never see the response.
 */
const LINGER_MS = 2_000;

const CLOSE = { Connection: "close" };

/** Sends a whole response. `body`: a value, or a string that is a JSON document. */
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

/**
 * Sends an error as the response. No part of a response may have been sent before. Returns whether
 * the response ends only when the rest of the request's body has come: the connection closes then.
 */
export function sendError(
  req: IncomingMessage,
  res: ServerResponse,
  { error: { status }, headers, body }: ErrorResponse,
): boolean {
  const { Connection: connection = res.getHeader("Connection") } = headers;
  const closes = status === 413 || !res.shouldKeepAlive || connection === "close";
  // Node closes the connection if Expect was not answered with 100 Continue. The body may come all
  // the same: some proxies pass Expect on and do not wait.
  const lingers = !req.complete && (closes || req.headers.expect !== undefined);
  if (lingers) {
    res.writeHead(status, { ...headers, ...documentHeaders(body), ...CLOSE }).write(body);
    setTimeout(() => res.end(), LINGER_MS).unref();
    req.on("end", () => res.end()).resume();
  } else sendJson(res, status, body, headers);
  return lingers;
}

/** A whole HTTP/1.1 response as text, for a socket whose request Node could not parse. */
export function rawError({ error, headers, body }: ErrorResponse, requestId: string): string {
  const all = { "X-Request-Id": requestId, ...documentHeaders(body), ...CLOSE, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${lines.join("")}\r\n${body}`;
}
