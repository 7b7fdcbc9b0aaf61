// One request and its response, from when the request waits for a connection until the end of the
// response has been read. It lives that long, so it must not hold the request's text. It passes the
// body's bytes on as they arrive; Node's streams would cost several times as much. It is a class
// for speed: one is made for every request, and closures took some microseconds more.
import type { Socket } from "node:net";
import type {
  PushBody,
  TakePiece,
  UpstreamRequest,
  UpstreamResponse,
} from "../../../core/upstream/transport.ts";
import type { ResponseHead } from "./response-head.ts";

/** Queued bytes at which the connection is paused. A reader that keeps up leaves none queued. */
const MAX_QUEUED_BYTES = 16 * 1024;

/** How a promise is settled. */
interface Settle<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: unknown) => void;
}

/** The reader of the body. */
interface Reader extends Settle<void> {
  readonly take: TakePiece;
}

/** The body has one reader. It gets the bytes that arrived while it had no room as one piece. */
export class Exchange implements PushBody {
  /** The request. The connection removes it when it sends it. */
  bytes: Buffer | undefined;
  /** How long a new connection may take to be established, in milliseconds. */
  readonly connectMs: number;
  /** Called when the request has been written to its connection. */
  readonly sent: () => void;
  /** Leaves the queue, or closes the connection. Undefined: the exchange is over. */
  detach: (() => void) | undefined;
  /** Resolves when the head of the response has arrived. The body may follow later. */
  readonly response: Promise<UpstreamResponse>;
  #settle!: Settle<UpstreamResponse>;
  /** The socket that delivers the body. Undefined: no body is arriving. */
  #socket: Socket | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #reader: Reader | undefined;
  /** Whether the reader has no room at the moment. */
  #isFull = false;

  /** Sends the request once more. Undefined: the response has begun, or it was sent again. */
  #sendAgain: (() => void) | undefined;

  /** `sendAgain`: puts the exchange on a new connection, if its pooled one had been closed. */
  constructor(
    bytes: Buffer,
    { connectMs, sent }: Pick<UpstreamRequest, "connectMs" | "sent">,
    sendAgain: () => void,
  ) {
    this.bytes = bytes;
    this.connectMs = connectMs;
    this.sent = sent;
    this.#sendAgain = sendAgain;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
  }

  /** Call this with the head of the response and the socket that delivers it. */
  respond({ status, headers, body }: ResponseHead, socket: Socket): void {
    this.#socket = socket;
    this.#sendAgain = undefined;
    this.#settle.resolve({ status, headers, body: body === null ? null : this });
  }

  /** Call this with bytes of the body. */
  push(bytes: Uint8Array): void {
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#reader && !this.#isFull) this.#pass(this.#reader);
    else if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#socket?.pause();
  }

  /** Call this when the response is complete. */
  end(): void {
    this.#ended = true;
    this.#socket = undefined;
    this.detach = undefined;
    if (this.#reader && !this.#isFull) this.#pass(this.#reader);
  }

  /**
   * Ends the exchange with an error, which the reader gets after the bytes that have arrived. Does
   * nothing once the reader has had the end or an error. `isStale`: the server had closed the
   * connection after an earlier request, and has not seen this one. It is sent once more, on a new
   * connection.
   */
  fail(error: unknown, isStale = false): void {
    if (isStale && this.#sendAgain) {
      this.#resend(this.#sendAgain);
      return;
    }
    if (this.#ended && this.#queuedBytes === 0) return;
    this.#ended = true;
    this.#socket = undefined;
    this.#sendAgain = undefined;
    this.#failure = { error };
    this.#settle.reject(error); // no effect after a response
    if (this.#queuedBytes === 0) this.#takeReader()?.reject(error);
  }

  /** Ends the exchange at once. Discards the bytes that were not read. */
  abort(reason: unknown): void {
    this.fail(reason);
    this.#queue = [];
    this.#queuedBytes = 0;
    this.detach?.();
  }

  each(take: TakePiece): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reader = { take, resolve, reject };
      this.#pass(this.#reader);
    });
  }

  #resend(sendAgain: () => void): void {
    this.#sendAgain = undefined;
    try {
      sendAgain();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Passes the bytes received, and the end, to the reader while it has room. */
  #pass(reader: Reader): void {
    while (this.#queuedBytes > 0) {
      let room: ReturnType<TakePiece>;
      try {
        room = reader.take(this.#takeQueue());
      } catch (error) {
        this.#abandon(error);
        return;
      }
      if (room) {
        this.#isFull = true;
        room.then(
          () => {
            this.#isFull = false;
            if (this.#reader) this.#pass(reader);
          },
          (error) => this.#abandon(error),
        );
        return;
      }
    }
    if (this.#failure) this.#takeReader()?.reject(this.#failure.error);
    else if (this.#ended) this.#takeReader()?.resolve();
  }

  /** Ends the exchange because the reader has failed. */
  #abandon(error: unknown): void {
    this.#takeReader()?.reject(error);
    if (!this.#ended) this.detach?.();
  }

  /** Removes and returns the reader. Undefined: it has had the end. */
  #takeReader(): Reader | undefined {
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
