// An exchange: one request and its response, as the handler gets them.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Cancel } from "./cancel.ts";

export interface Exchange {
  /** The request. Node has parsed its head; the handler reads its body. */
  readonly req: IncomingMessage;
  /** The response. It already has X-Request-Id. */
  readonly res: ServerResponse;
  /** The client's X-Request-Id if it was usable, else a new one. */
  readonly requestId: string;
  /** Aborted when the work must stop: with a ClientGone if the client left, or by `abort`. */
  readonly cancel: Cancel;
  /** Stops the work on this exchange. Only the first reason counts. */
  abort(reason: Error): void;
  /**
   * Counts bytes that this exchange retains in memory until its end; negative: bytes that it frees.
   * Aborts `cancel` with an ApiError if all exchanges together would retain too many.
   */
  retain(bytes: number): void;
  /** Aborts with `reason()` after `ms` milliseconds, unless the exchange has ended by then. */
  expire(ms: number, reason: () => Error): void;
  /**
   * Called once at the end of the exchange: the client has the whole response, or has left. Absent:
   * there is no listener.
   */
  endListener?: () => void;
  /** Fields that the handler adds to the line of the access log. */
  readonly log: LogFields;
  /** The observers of this exchange. */
  readonly observers: readonly ExchangeObserver[];
}

/** Fields of the access log that only a handler knows. */
export interface LogFields {
  /** The account of the key. Absent or null: the client sent no known key. */
  account?: string | null | undefined;
  /** The id of the key. Absent or null: the client sent no known key. */
  key_id?: string | null | undefined;
  /** The canonical name of the model that serves or served. Absent or null: there is none. */
  model?: string | null | undefined;
  /** The model or alias that the client named. */
  model_requested?: string | undefined;
  /** The provider that served, or that was asked last. */
  provider?: string | null | undefined;
  /** `estimated` if at least one of the figures is an estimate. */
  usage_source?: string | undefined;
  /** As Settlement.recovery. */
  recovery?: string | undefined;
  /** The attempts of a recovered reply: each with its model and its outcome. */
  attempts?: readonly string[] | undefined;
  /** The tokens billed. Absent: none are billed. */
  prompt_tokens?: number | undefined;
  /** The tokens billed, reasoning included. Absent: none are billed. */
  completion_tokens?: number | undefined;
  /** An exact decimal number, in `currency`. */
  cost?: string | undefined;
  /** Three capital letters, such as USD. Absent where `cost` is. */
  currency?: string | undefined;
  /** The code of the error that the client got. */
  error_code?: string | undefined;
  /** The path of the request field that caused the error. */
  param?: string | null | undefined;
}

/** A line of the access log. Undefined fields are left out. */
export interface AccessRecord extends Readonly<LogFields> {
  /** When the response ended, in ISO 8601. */
  readonly time: string;
  /** The id in X-Request-Id. */
  readonly request_id: string;
  /** Null if the request could not be parsed. */
  readonly method: string | null;
  /** The path without the query. Null if the request could not be parsed. */
  readonly path: string | null;
  /** The status of the response; 499 if the client left before it had all of it. */
  readonly status: number;
  /** Milliseconds from the parsed head to the end of the response, with three decimals. */
  readonly duration_ms: number;
}

/** An observer of one exchange. */
export interface ExchangeObserver {
  /**
   * The response has ended, complete or not. `route` is the pattern of the route, such as
   * `/v1/models/{id}`, or "other". Absent: the observer does not need this event.
   */
  responded?(route: string, record: AccessRecord): void;
}

/**
 * Answers an exchange. The server renders its exceptions as errors. `parameter` is the text that
 * the route's `{name}` matched, or "" if the route has none.
 */
export type Handler = (exchange: Exchange, parameter: string) => void | Promise<void>;

/**
 * Handlers by path, then by method. A path may end in `{name}`, which matches one or more
 * characters, slashes included.
 */
export interface Routes {
  readonly [path: string]: { readonly [method: string]: Handler };
}
