// The part of a request in another client API that a checked request keeps.

/** A request in another client API, as it was written: for a provider that has the same format. */
export interface NativeRequest {
  /** The name of that provider's dialect. */
  readonly dialect: string;
  /** The client's own JSON, as far as that provider takes it. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Headers that are passed on. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The part that chat completions cannot express, so that only such a provider can serve it.
   * Absent: any can.
   */
  readonly only?: { readonly path: (string | number)[]; readonly message: string } | undefined;
  /** The bytes of the blocks and tools of `body` that the chat completion lacks. Absent: none. */
  readonly untranslatedBytes?: number;
}
