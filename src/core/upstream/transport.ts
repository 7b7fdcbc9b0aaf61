// The interface for calls to providers: one function that sends a request and resolves with the
// response. HTTP clients, the demo model and test doubles implement it.
import type { Cancel } from "../http/cancel.ts";

/**
 * Sends a request. Resolves when the head of the response has arrived. Rejects, and the body
 * throws, with the reason of `cancel` if that is aborted, with a ConnectTimeout, or with what the
 * network reports.
 */
export type Transport = (url: string, request: UpstreamRequest) => Promise<UpstreamResponse>;

export interface UpstreamRequest {
  /** Every call to a provider is a POST. */
  readonly method: "POST";
  /** A redirect is not followed: it would carry the provider's key to another address. */
  readonly redirect: "manual";
  /** The provider's key is among them, if it has one. */
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. It is sent in UTF-8. */
  readonly body: string;
  /** Aborts the request, or the response that is being read. */
  readonly cancel: Cancel;
  /** How long a new connection may take to be established, in milliseconds. */
  readonly connectMs: number;
  /**
   * Called when the request goes out on a connection. A transport that cannot know when that is
   * calls it at once.
   */
  readonly sent: () => void;
  /**
   * Called when the provider turns out to have closed a pooled connection before a byte of the
   * response arrived, and the request is about to be sent once more on a new one. Absent: nothing
   * is called.
   */
  readonly resent?: (() => void) | undefined;
  /**
   * Called when the provider has refused the request's credentials, and it is to be sent with
   * others. Absent: nothing is called.
   */
  readonly refused?: (() => void) | undefined;
  /** Called after that refusal, before waiting for new credentials. Absent: nothing is called. */
  readonly renewing?: (() => void) | undefined;
}

export interface UpstreamResponse {
  /** The HTTP status, also that of a redirect, which is not followed. */
  readonly status: number;
  /** The headers of the response, such as Content-Type and Retry-After. */
  readonly headers: UpstreamHeaders;
  /** Not decompressed. Null if the response has none. */
  readonly body: UpstreamBody | null;
}

/** A body in pieces, for one reader: as a stream of the fetch contract, or one that passes them. */
export type UpstreamBody = AsyncIterable<Uint8Array> | PushBody;

/** A body that calls its reader, which saves the promises of an iteration. */
export interface PushBody {
  /**
   * Passes each piece to `take`; the next one when the promise has resolved, if `take` returns one.
   * Resolves at the body's end. Rejects with the body's error, or with what `take` throws, after
   * which the rest of the body is abandoned.
   */
  each(take: TakePiece): Promise<void>;
}

/** Takes a piece of a body. The promise, if there is one, resolves when there is room for more. */
export type TakePiece = (bytes: Uint8Array) => Promise<unknown> | undefined | void;

export interface UpstreamHeaders {
  /** The value of a header, whatever the case of its name; null if it is absent. */
  get(name: string): string | null;
}

/** No connection was established within `connectMs`. */
export class ConnectTimeout extends Error {}
