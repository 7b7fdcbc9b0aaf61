// One request and its response, from the moment that the request waits for a connection until the
// end of the response has been read. It outlives both, so it must not hold the request's text. The
// bytes of the body go in as they come from the connection, and come out through an AsyncIterable.
// Node's streams could do it at several times the cost. It is a class because it is made for every
// request: as closures it took some microseconds more.
import type { Socket } from "node:net";
import type { UpstreamRequest, UpstreamResponse } from "../../../core/upstream/transport.ts";
import type { ResponseHead } from "./response-head.ts";

/** Queued bytes at which the connection is paused: a reader that keeps up leaves nothing queued. */
const MAX_QUEUED_BYTES = 16 * 1024;

type Result = IteratorResult<Uint8Array, undefined>;

/** How a promise is settled. */
interface Settle<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

const END: Result = { done: true, value: undefined };

/** The body is for one reader. It gets all that has come since it last asked as one piece. */
export class Exchange implements AsyncIterableIterator<Uint8Array, undefined> {
  /** The request. The connection that sends it takes it away. */
  bytes: Buffer | undefined;
  /** How long a new connection may take to be established, in milliseconds. */
  readonly connectMs: number;
  /** Called when the request has been written to its connection. */
  readonly sent: () => void;
  /** Takes the exchange from where it is: the queue, or its connection. Undefined: it is over. */
  detach: (() => void) | undefined;
  /** Resolves when the head of the response has come. The body may still be on its way. */
  readonly response: Promise<UpstreamResponse>;
  #settle!: Settle<UpstreamResponse>;
  /** That of the response whose body comes. Undefined: none comes. */
  #socket: Socket | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #reader: Settle<Result> | undefined;

  constructor(bytes: Buffer, { connectMs, sent }: Pick<UpstreamRequest, "connectMs" | "sent">) {
    this.bytes = bytes;
    this.connectMs = connectMs;
    this.sent = sent;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
  }

  /** The head of the response has come from this socket. */
  respond({ status, headers, body }: ResponseHead, socket: Socket): void {
    this.#socket = socket;
    this.#settle.resolve({ status, headers, body: body === null ? null : this });
  }

  /** Bytes of the body have come. */
  push(bytes: Uint8Array): void {
    const reader = this.#takeReader();
    if (reader) {
      reader.resolve({ done: false, value: bytes });
      return;
    }
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#socket?.pause();
  }

  /** The response is complete. */
  end(): void {
    this.#ended = true;
    this.#socket = undefined;
    this.detach = undefined;
    this.#takeReader()?.resolve(END);
  }

  /**
   * There will be no response, or no more of it. The reader gets this error after what has come: a
   * reply whose end was there by then is whole. Does nothing once the end has been read, or after
   * another failure that has been read up to.
   */
  fail(error: unknown): void {
    if (this.#ended && this.#queuedBytes === 0) return;
    this.#ended = true;
    this.#socket = undefined;
    this.#failure = { error };
    this.#settle.reject(error); // changes nothing once there was a response
    if (this.#queuedBytes === 0) this.#takeReader()?.reject(error);
  }

  /** Ends the exchange at once, wherever it is by then. Discards the bytes that were not read. */
  abort(reason: unknown): void {
    this.fail(reason);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.detach?.();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#queuedBytes > 0) return Promise.resolve({ done: false, value: this.#takeQueue() });
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.#ended) return Promise.resolve(END);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** The reader reads no further. */
  return(): Promise<Result> {
    if (!this.#ended) this.detach?.();
    return Promise.resolve(END);
  }

  /** The reader that waits. Undefined: none does. */
  #takeReader(): Settle<Result> | undefined {
    const reader = this.#reader;
    this.#reader = undefined;
    return reader;
  }

  #takeQueue(): Uint8Array {
    const bytes = this.#queue.length === 1 ? this.#queue[0]! : Buffer.concat(this.#queue);
    this.#queue = [];
    this.#queuedBytes = 0;
    if (this.#socket?.isPaused()) this.#socket.resume();
    return bytes;
  }
}
