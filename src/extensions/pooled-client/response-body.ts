// The body of a response: bytes go in as they come from the connection, and come out through an
// AsyncIterable. Node's streams could do it at several times the cost.

/** Queued bytes at which the connection is paused: about what the kernel hands over at once. */
const MAX_QUEUED_BYTES = 64 * 1024;

/** What a body wants of the connection that it comes from. None is called after its end. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** Nobody will read the rest. */
  stop(): void;
}

export interface ResponseBody {
  /** For one reader. It gets all that has come since it last asked as one piece. */
  readonly pieces: AsyncIterable<Uint8Array>;
  push(bytes: Uint8Array): void;
  end(): void;
  /**
   * What has not been read is thrown away, and the reader gets this error next. Does nothing once
   * the end has been read, or after another failure.
   */
  fail(error: unknown): void;
}

type Result = IteratorResult<Uint8Array, undefined>;

/** A reader that waits. */
interface Waiting {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

const END: Result = { done: true, value: undefined };

export function createBody(source: BodySource): ResponseBody {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let paused = false;
  let ended = false;
  let failure: { readonly error: unknown } | undefined;
  let waiting: Waiting | undefined;
  const wait = (resolve: Waiting["resolve"], reject: Waiting["reject"]): void => {
    waiting = { resolve, reject };
  };

  /** The reader that waits, if there is one. It waits no longer. */
  function waiter(): Waiting | undefined {
    const found = waiting;
    waiting = undefined;
    return found;
  }

  function takeQueue(): Uint8Array {
    const bytes = queue.length === 1 ? queue[0]! : Buffer.concat(queue);
    queue = [];
    queuedBytes = 0;
    if (paused && !ended) source.resume();
    paused = false;
    return bytes;
  }

  function fail(error: unknown): void {
    if (ended && queuedBytes === 0) return;
    ended = true;
    failure = { error };
    queue = [];
    queuedBytes = 0;
    waiter()?.reject(error);
  }

  const iterator: AsyncIterator<Uint8Array, undefined> = {
    next() {
      if (queuedBytes > 0) return Promise.resolve({ done: false, value: takeQueue() });
      if (failure) return Promise.reject(failure.error);
      return ended ? Promise.resolve(END) : new Promise(wait);
    },
    return() {
      if (!ended) source.stop();
      return Promise.resolve(END);
    },
  };

  return {
    pieces: { [Symbol.asyncIterator]: () => iterator },
    push(bytes) {
      const reader = waiter();
      if (reader) {
        reader.resolve({ done: false, value: bytes });
        return;
      }
      queue.push(bytes);
      queuedBytes += bytes.length;
      if (paused || queuedBytes < MAX_QUEUED_BYTES) return;
      paused = true;
      source.pause();
    },
    end() {
      ended = true;
      waiter()?.resolve(END);
    },
    fail,
  };
}
