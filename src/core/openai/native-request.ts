// The client's own request in another API, which a checked request keeps for a provider of the same
// format.

export interface NativeRequest {
  /** The dialect of the providers that have this format. */
  readonly dialect: string;
  /** The client's JSON, without what such a provider would refuse. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The client's headers that such a provider gets. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The first part that chat completions cannot express, so that only such a provider can serve the
   * request. Absent: every provider can.
   */
  readonly nativeOnly?:
    | { readonly path: (string | number)[]; readonly message: string }
    | undefined;
  /** The bytes of the blocks and tools that were not translated. Absent: none. */
  readonly untranslatedBytes?: number;
}
