// The body of a response: bytes go in as they come from the connection, and come out through an
// AsyncIterable. Node's streams could do it at several times the cost. It is a class because it is
// made for every response: as closures it took some microseconds more.

/** Queued bytes at which the connection is paused: a reader that keeps up leaves nothing queued. */
const MAX_QUEUED_BYTES = 16 * 1024;

/** Requests of a body to the connection that it comes from. None is called after its end. */
export interface BodySource {
  /** The reader is behind: it wants no more bytes until `resume`. */
  pause(): void;
  /** The reader has taken all that was queued. */
  resume(): void;
  /** Nobody will read the rest. */
  stop(): void;
}

type Result = IteratorResult<Uint8Array, undefined>;

/** A reader that waits. */
interface Waiting {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

const END: Result = { done: true, value: undefined };

/** For one reader. It gets all that has come since it last asked as one piece. */
export class ResponseBody implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: BodySource;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #paused = false;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #waiting: Waiting | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  push(bytes: Uint8Array): void {
    const reader = this.#takeReader();
    if (reader) {
      reader.resolve({ done: false, value: bytes });
      return;
    }
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#paused || this.#queuedBytes < MAX_QUEUED_BYTES) return;
    this.#paused = true;
    this.#source.pause();
  }

  end(): void {
    this.#ended = true;
    this.#takeReader()?.resolve(END);
  }

  /**
   * The reader gets this error after what has come: a reply whose end was there by then is whole.
   * Does nothing once the end has been read, or after another failure that has been read up to.
   */
  fail(error: unknown): void {
    if (this.#ended && this.#queuedBytes === 0) return;
    this.#ended = true;
    this.#failure = { error };
    if (this.#queuedBytes === 0) this.#takeReader()?.reject(error);
  }

  /** Discards the bytes that were not read. To be called after `fail`. */
  discard(): void {
    this.#queue = [];
    this.#queuedBytes = 0;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#queuedBytes > 0) return Promise.resolve({ done: false, value: this.#takeQueue() });
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.#ended) return Promise.resolve(END);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  /** The reader reads no further. */
  return(): Promise<Result> {
    if (!this.#ended) this.#source.stop();
    return Promise.resolve(END);
  }

  #takeReader(): Waiting | undefined {
    const reader = this.#waiting;
    this.#waiting = undefined;
    return reader;
  }

  #takeQueue(): Uint8Array {
    const bytes = this.#queue.length === 1 ? this.#queue[0]! : Buffer.concat(this.#queue);
    this.#queue = [];
    this.#queuedBytes = 0;
    if (this.#paused && !this.#ended) this.#source.resume();
    this.#paused = false;
    return bytes;
  }
}
