// One request and its response, from the moment that the request waits for a connection until the
// end of the response has been read. It outlives both, so it must not hold the request's text. The
// bytes of the body go in as they come from the connection, and come out through an AsyncIterable.
// Node's streams could do it at several times the cost.
import type { Socket } from "node:net";
import type { UpstreamRequest, UpstreamResponse } from "../../../core/upstream/transport.ts";
import type { ResponseHead } from "./response-head.ts";

/** Queued bytes at which the connection is paused: a reader that keeps up leaves nothing queued. */
const MAX_QUEUED_BYTES = 16 * 1024;

export class Exchange {
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
  #resolve!: (response: UpstreamResponse) => void;
  #reject!: (error: unknown) => void;
  /** That of the response whose body comes. Undefined: none comes. */
  #socket: Socket | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isOver = false;
  #failure: { readonly error: unknown } | undefined;
  /** Wakes the reader that waits. */
  #wake: () => void = () => undefined;

  constructor(bytes: Buffer, { connectMs, sent }: Pick<UpstreamRequest, "connectMs" | "sent">) {
    this.bytes = bytes;
    this.connectMs = connectMs;
    this.sent = sent;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** The head of the response has come from this socket. */
  respond({ status, headers, body }: ResponseHead, socket: Socket): void {
    this.#socket = socket;
    this.#resolve({ status, headers, body: body === null ? null : this.#read() });
  }

  /** Bytes of the body have come. */
  push(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#socket?.pause();
    this.#wake();
  }

  /** The response is complete. */
  end(): void {
    this.#isOver = true;
    this.#socket = undefined;
    this.detach = undefined;
    this.#wake();
  }

  /**
   * There will be no response, or no more of it. The reader gets this error after what has come: a
   * reply whose end was there by then is whole.
   */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#reject(error); // changes nothing once there was a response
    this.end();
  }

  /** Ends the exchange at once, wherever it is by then. Discards the bytes that were not read. */
  abort(reason: unknown): void {
    const { detach } = this;
    if (this.#isOver && this.#queue.length === 0) return;
    this.#queue = [];
    this.#failure = { error: reason };
    this.fail(reason);
    detach?.();
  }

  /** The body, for one reader. It gets all that has come since it last asked as one piece. */
  async *#read(): AsyncGenerator<Uint8Array, undefined> {
    try {
      while (this.#queue.length > 0 || !this.#isOver) {
        if (this.#queue.length > 0) yield this.#takeQueue();
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
      if (this.#failure) throw this.#failure.error;
    } finally {
      this.detach?.(); // the reader reads no further
    }
  }

  #takeQueue(): Uint8Array {
    const bytes = this.#queue.length === 1 ? this.#queue[0]! : Buffer.concat(this.#queue);
    this.#queue = [];
    this.#queuedBytes = 0;
    if (this.#socket?.isPaused()) this.#socket.resume();
    return bytes;
  }
}
