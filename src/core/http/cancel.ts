// When to stop, and why: what an AbortController tells, without its price: two of them cost a request more than the check of its body.
// Who needs a real signal gets one.

/** The client closed its connection before it had its whole answer. */
export class ClientGone extends Error {}

export class Cancel {
  aborted = false;
  reason: unknown;
  readonly #listeners = new Set<() => void>();
  #real: AbortController | undefined;

  /** Only the first call counts. */
  abort(reason?: unknown): void {
    if (this.aborted) return;
    [this.aborted, this.reason] = [true, reason];
    for (const listener of this.#listeners) listener();
  }
  /** Calls `listener` on abort, which may be at once, unless what is returned is called before. */
  onAbort(listener: () => void): () => void {
    if (this.aborted) listener();
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
  /** As an AbortSignal, for functions that take one. */
  get signal(): AbortSignal {
    if (this.#real) return this.#real.signal;
    const real = new AbortController();
    this.#real = real;
    this.onAbort(() => real.abort(this.reason));
    return real.signal;
  }
}
