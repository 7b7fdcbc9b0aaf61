// The contract of a format in which clients ask for a reply: how a request is read, and how its
// reply and all errors are written. The core has one, chat completions. Extensions bring others.
// They differ in nothing else: keys, limits, candidates, books are the same for all.
import type { IncomingHttpHeaders } from "node:http";
import type { ApiError } from "../openai/errors.ts";
import type { ReplyWriter } from "../openai/reply.ts";
import type { ChatRequest } from "../openai/request.ts";
import type { Serving } from "../routing/attempt.ts";
import type { Steps } from "../turns.ts";

/** The body of a request. */
export interface ParsedBody {
  /** As JSON.parse made it. */
  readonly json: unknown;
  /** Whether the work on it is done in turns: then each loop over it is to have a `yield`. */
  readonly large: boolean;
}

export interface ClientApi {
  /** It serves POST at this path. The errors of all paths below it have its shape too. */
  readonly path: string;
  /** Whether the errors of a request to another path have its shape too. Absent: of none. */
  owns?(path: string, headers: IncomingHttpHeaders): boolean;
  /** The events that a stream has in silence: a comment, or an event without a meaning. */
  readonly keepAlive: string;
  /** A header of responses that has the request id, beside X-Request-Id. Absent: there is none. */
  readonly requestIdHeader?: string;
  /** The key in a request's headers, as an Authorization header. Undefined: there is none. */
  authorization(headers: IncomingHttpHeaders): string | undefined;
  /** Checks a body, in steps. Throws an ApiError or a ValidationError. */
  read(body: ParsedBody, headers: IncomingHttpHeaders): Steps<ChatRequest>;
  /**
   * Creates the writer of a reply when a model begins it: of a stream if `chat.stream`, else of one
   * JSON document. `now`: the wall clock, in milliseconds.
   */
  writer(chat: ChatRequest, serving: Serving, now: number): ReplyWriter;
  /** The JSON document of an error. */
  errorBody(error: ApiError, requestId: string): object;
  /** An error as the last events of a stream. `chat`: what `read` returned. */
  errorEvents(error: ApiError, requestId: string, chat: ChatRequest): string;
}
