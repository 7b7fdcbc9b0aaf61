// Refuses input that no handler gets: bytes that Node cannot parse, requests that take too long to
// arrive, CONNECT, and the preface of HTTP/2.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { isResponseOwed, type Connection } from "./connection.ts";
import { ApiError } from "../openai/errors.ts";
import { requestId, requestIdFromBytes } from "./request-id.ts";
import { rawError, type RenderError } from "./responses.ts";

/** The error that Node's server reports for a request that it could not parse. */
interface ClientError extends NodeJS.ErrnoException {
  /** The bytes that could not be parsed. */
  readonly rawPacket?: Buffer;
}

/** `logRefused`: logs an error that was sent without an exchange. */
export function createRefusals(
  connectionOf: (socket: Duplex) => Connection,
  logRefused: (error: ApiError, requestId: string, req: Partial<IncomingMessage>) => void,
  renderError: RenderError,
) {
  /** Sends an error and closes the connection. `id`: the request id if there is no exchange. */
  function refuse(
    socket: Duplex,
    error: ApiError,
    id: string,
    req: Partial<IncomingMessage> = {},
  ): void {
    const connection = connectionOf(socket);
    connection.pipeline?.stop();
    if (connection.broken) return;
    socket.on("error", () => socket.destroy()); // Node has removed its own listener.
    if (!canSendError(connection)) {
      closeAfterOwed(connection);
      return;
    }
    const [exchange] = connection.live;
    const shownId = exchange?.requestId ?? id;
    const response = renderError(error, shownId, exchange?.req ?? req);
    socket.end(rawError(response, shownId), () => socket.destroy());
    if (exchange) {
      exchange.loggedStatus = error.status;
      exchange.log.error_code = error.code;
    } else logRefused(error, id, req);
  }

  return {
    /** Refuses CONNECT. */
    connect(req: IncomingMessage, socket: Duplex): void {
      const error = new ApiError("method_not_allowed", NO_PROXY, { headers: ALLOWED });
      refuse(socket, error, requestId(req.rawHeaders), req);
    },
    /**
     * Refuses the preface of HTTP/2. Node closes the connection as soon as its listener returns.
     */
    preface(req: IncomingMessage): void {
      refuse(req.socket, malformed(), requestId(req.rawHeaders), req);
    },
    /**
     * Refuses a request that Node's parser or timers have rejected. A client that left in the
     * middle of a body gets no answer.
     */
    clientError(error: ClientError, socket: Duplex): void {
      const isEnd = error.code === "HPE_INVALID_EOF_STATE";
      const isInBody = () => [...connectionOf(socket).live][0]?.req.complete === false;
      if (!socket.writable || (isEnd && isInBody())) socket.destroy();
      else refuse(socket, refusalOf(error), requestIdFromBytes(error.rawPacket));
    },
  };
}

/**
 * Whether an error can be written to the socket without mixing with another response: no exchange
 * is live, or only that of the request that is still arriving, and its response has not begun.
 */
function canSendError({ live, latest }: Connection): boolean {
  const [first, second] = live;
  // If the last response ended before its request had arrived, these bytes may be its body.
  return first ? !second && !isResponseOwed(first) : latest?.req.complete !== false;
}

/** Closes the connection after the responses to the requests before the broken one. */
function closeAfterOwed(connection: Connection): void {
  connection.broken = true;
  const last = [...connection.live].findLast(isResponseOwed);
  if (!last) connection.socket.destroy();
  else if (!last.res.headersSent) last.res.setHeader("Connection", "close");
}

const malformed = (): ApiError =>
  new ApiError("malformed_request", "This is not a valid HTTP request.");

const NO_PROXY = "This is not a proxy: CONNECT is not supported.";
const ALLOWED = { Allow: "GET, HEAD, POST" };

function refusalOf({ code }: ClientError): ApiError {
  if (code === "HPE_HEADER_OVERFLOW")
    return new ApiError("headers_too_large", "The request's headers are larger than 16 KiB.");
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return new ApiError("request_timeout", "The request did not arrive in time.");
  return malformed();
}
