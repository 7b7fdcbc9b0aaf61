// The interface of a client API: it reads requests, and writes replies and errors, in one format.
// The core has one, chat completions; extensions add others. Keys, limits, candidates and books are
// the same for all of them.
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
  /** Whether the body is so large that each loop over it must have a `yield`. */
  readonly large: boolean;
}

export interface ClientApi {
  /** The path that serves POST. Errors of this path and all below it are in this API's format. */
  readonly path: string;
  /** Whether errors of another path are in this format too. Absent: they are not. */
  owns?(path: string, headers: IncomingHttpHeaders): boolean;
  /** Sent on a silent stream: a comment, or an event that clients ignore. */
  readonly keepAlive: string;
  /** A second response header, after X-Request-Id, for the request id. Absent: there is none. */
  readonly requestIdHeader?: string;
  /** The request's key in the form of an Authorization header. Undefined: it sends none. */
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
