// The contracts of a provider format. A dialect translates one wire format in both directions. It
// is pure and synchronous: it does no I/O and never waits. The gateway's one asynchronous pump
// (routing/stream.ts) feeds it, so a test can cut the bytes anywhere.
import type { Framing } from "../http/event-reader.ts";
import type { Part } from "../openai/parts.ts";
import type { NativeRequest } from "../openai/native-request.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { ProviderError } from "./provider-error.ts";
import type { Traits } from "./traits.ts";

/** The model that is to serve a request, as far as a dialect depends on it. */
export interface Target {
  /** The provider's name for the model. */
  readonly upstreamModel: string;
  /** Size of the context window in tokens. Absent or undefined: unknown. */
  readonly contextTokens?: number | undefined;
  /** Whether the model can think. A dialect never sends a thinking switch to one that cannot. */
  readonly reasoning: boolean;
  /** The differences of this model from others of the format. */
  readonly traits: Traits;
}

export interface ProviderRequest {
  /** Appended to the provider's base_url. */
  readonly path: string;
  /** Added to the provider's headers. Absent: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, without undefined fields. */
  readonly body: object;
}

/** Translates one reply. It has state, so each reply needs its own. */
export interface Decoder {
  /**
   * Returns the parts of one event (parsed JSON). Throws a ProviderError if the event says that the
   * provider failed.
   */
  push(event: unknown): Part[];
  /** Whether the last event ended the stream. Absent: the format has no such event. */
  readonly ended?: () => boolean;
  /**
   * Returns what `[DONE]` adds to a reply: its finish, if the provider states none. Throws as
   * `push`. Absent: it adds nothing.
   */
  readonly done?: () => Part[];
}

export interface Dialect {
  /** The framing of its streams. */
  readonly framing: Framing;
  /** Throws a ProviderError if this format cannot express the request. */
  request(chat: ChatRequest, target: Target): ProviderRequest;
  /** Whether this JSON, which is not an error, is a whole reply. */
  isReply(json: unknown): boolean;
  /**
   * The decoder of a stream. A whole reply is a stream of one event. `native`: as in ChatRequest; a
   * decoder of its format adds each event as it came.
   */
  decoder(target: Target, native?: NativeRequest): Decoder;
  /**
   * The meaning of an answer other than 200. `body` is its JSON, or its text (or the beginning of
   * it) if it is not JSON.
   */
  refusal(status: number, headers: RefusalHeaders, body: unknown): ProviderError;
}

export interface RefusalHeaders {
  /** Null: there is no such header. */
  get(name: string): string | null;
}

/** The provider and the account whose requests share the memory of a dialect. */
export interface DialectScope {
  /** The provider's base_url. */
  readonly baseUrl: string;
  /** The account of the request. Empty: none, as for a trial call. */
  readonly account: string;
}

/** A wire format. One is registered for each value of a provider's `dialect`. */
export interface DialectDefinition {
  /** The values of `thinking` that this format knows. */
  readonly thinkingSwitches: readonly string[];
  /** The values of `supports` that this format cannot express. */
  readonly unsupported: readonly string[];
  /**
   * The path that is appended to base_url, and an end of base_url that repeats a part of it.
   * Absent: any base_url is right.
   */
  readonly appended?: { readonly path: string; readonly end: RegExp };
  /** The vendor by whose published rules its providers count images, audio and files. */
  readonly mediaRules: string;
  /** Called for each attempt. */
  create(scope: DialectScope): Dialect;
}
