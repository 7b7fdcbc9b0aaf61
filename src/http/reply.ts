// Answers that are one JSON document: normal ones, and every error.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from "node:http";
import { errorBody, type ApiError } from "../protocol/errors.ts";

/** How long a refused body is read and thrown away so that the client gets to see the refusal. */
const LINGER_MS = 2_000;

/** `res` already carries X-Request-Id. */
export function sendJson(res: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  res.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), ...headers });
  res.end(text);
}

/** The headers of a document with which its connection ends. */
const lastHeaders = (text: string) => ({ "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text), Connection: "close" });

/** Answers with an error, before anything else was sent. */
export function sendError(req: IncomingMessage, res: ServerResponse, error: ApiError, requestId: string): void {
  const text = JSON.stringify(errorBody(error, requestId));
  if (req.complete || error.status !== 413 || req.headers.expect !== undefined) return sendJson(res, error.status, text, error.headers);
  // The client is still sending. Closing now would reset the connection and destroy the answer on its way, so the whole
  // answer goes out first and the end waits until the client is through, or for so long.
  res.writeHead(error.status, { ...error.headers, ...lastHeaders(text) });
  res.write(text);
  setTimeout(() => res.end(), LINGER_MS).unref();
  req.on("end", () => res.end()).resume();
}

/** A whole HTTP/1.1 error answer as text, for sockets whose request Node could not parse; it closes the connection. */
export function rawError(error: ApiError, requestId: string): string {
  const body = JSON.stringify(errorBody(error, requestId));
  const headers = Object.entries({ "X-Request-Id": requestId, ...lastHeaders(body), ...error.headers });
  const head = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head}\r\n${body}`;
}
