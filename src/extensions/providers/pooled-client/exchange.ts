// One request and its response, from the moment that the request waits for a connection until the
// end of the response has been read. It outlives both, so it must not hold the request's text.
import type { Cancel } from "../../../core/http/cancel.ts";
import type { UpstreamRequest, UpstreamResponse } from "../../../core/upstream/transport.ts";
import { ResponseBody, type BodySource } from "./response-body.ts";
import type { ResponseHead } from "./response-head.ts";

export interface Exchange {
  /** The request. The connection that sends it takes it away. */
  bytes: Buffer | undefined;
  /** How long a new connection may take to be established, in milliseconds. */
  readonly connectMs: number;
  /** Called when the request has been written to its connection. */
  readonly sent: () => void;
  /** Takes the exchange from where it is: the queue, or its connection. Undefined: it is over. */
  detach: (() => void) | undefined;
  /** The body of the response. Undefined: there is no response yet, or it has none. */
  body: ResponseBody | undefined;
  /** The head of the response has come. */
  respond(head: ResponseHead, source: BodySource): void;
  /** There will be no response, or no more of it. Does nothing if all of it has been read. */
  fail(error: unknown): void;
}

/** How the promise of a response is settled. */
export interface Settle {
  /** Called when the head has come. The body may still be on its way. */
  readonly resolve: (response: UpstreamResponse) => void;
  /** Called with the error of Exchange.fail(). Changes nothing once there was a response. */
  readonly reject: (error: unknown) => void;
}

export function createExchange(
  bytes: Buffer,
  { connectMs, sent }: Pick<UpstreamRequest, "connectMs" | "sent">,
  { resolve, reject }: Settle,
): Exchange {
  const exchange: Exchange = {
    bytes,
    connectMs,
    sent,
    detach: undefined,
    body: undefined,
    respond({ status, headers, body }, source) {
      if (body !== null) exchange.body = new ResponseBody(source);
      resolve({ status, headers, body: exchange.body ?? null });
    },
    fail(error) {
      reject(error);
      exchange.body?.fail(error);
    },
  };
  return exchange;
}

/** Ends the exchange at once when the request is aborted, wherever it is by then. */
export function abortWith(cancel: Cancel, exchange: Exchange): void {
  cancel.onAbort(() => {
    exchange.fail(cancel.reason);
    exchange.body?.discard();
    exchange.detach?.();
  });
}
