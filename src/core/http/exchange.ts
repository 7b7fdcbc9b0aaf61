// An exchange: one request and its response, as its handler sees it.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Cancel } from "./cancel.ts";

export interface Exchange {
  /** Node has parsed its head. The handler reads its body. */
  readonly req: IncomingMessage;
  /** It already has X-Request-Id. */
  readonly res: ServerResponse;
  /** The client's X-Request-Id if it was usable, else a new one. */
  readonly requestId: string;
  /** Aborted when the work must stop: with a ClientGone if the client has left, else as `abort`. */
  readonly cancel: Cancel;
  /** Ends the work on this exchange. Only the first reason counts. */
  abort(reason: Error): void;
  /**
   * Counts bytes that this exchange keeps in memory until it is over; negative: that it keeps no
   * longer. Aborts `cancel` with an ApiError if all exchanges together would keep too many.
   */
  retain(bytes: number): void;
  /** Aborts with `reason()` after `ms` milliseconds, unless the exchange is over by then. */
  expire(ms: number, reason: () => Error): void;
  /**
   * Called once, when the exchange is over: the client has the whole response, or has left. Absent:
   * there is no listener.
   */
  endListener?: () => void;
  /** Fields that the handler adds to the line of the access log. */
  readonly log: LogFields;
  /** What hears of it. */
  readonly observers: readonly ExchangeObserver[];
}

/** Fields of the access log that only a handler knows. */
export interface LogFields {
  /** Absent or null if the client sent no key that is known. */
  account?: string | null | undefined;
  /** Absent or null if the client sent no key that is known. */
  key_id?: string | null | undefined;
  /** The canonical name of the model that is to serve, or has served. Absent if there is none. */
  model?: string | null | undefined;
  /** The model or alias that the client named. */
  model_requested?: string | undefined;
  /** The provider that served, or was asked last. */
  provider?: string | null | undefined;
  /** `estimated` if at least one of the figures is an estimate. */
  usage_source?: string | undefined;
  /** As Settlement.recovery. */
  recovery?: string | undefined;
  /** The attempts of a recovered reply: each with its model and its outcome. */
  attempts?: readonly string[] | undefined;
  /** As billed. Absent: nothing is billed. */
  prompt_tokens?: number | undefined;
  /** As billed, reasoning included. Absent: nothing is billed. */
  completion_tokens?: number | undefined;
  /** An exact decimal number, in `currency`. */
  cost?: string | undefined;
  /** Three capital letters, such as USD. Absent where `cost` is. */
  currency?: string | undefined;
  /** The code of the error that the client got. */
  error_code?: string | undefined;
  /** The path of the request field that is to blame. */
  param?: string | null | undefined;
}

/** The fields that every line has, and those of LogFields. An undefined one is left out. */
export interface AccessRecord extends Readonly<LogFields> {
  /** When the response ended, in ISO 8601. */
  readonly time: string;
  /** As in X-Request-Id. */
  readonly request_id: string;
  /** Null if the request could not be parsed. */
  readonly method: string | null;
  /** Without the query. Null if the request could not be parsed. */
  readonly path: string | null;
  /** 499 if the client left before it had the whole response. */
  readonly status: number;
  /** From the parsed head to the end of the response, in milliseconds, to the microsecond. */
  readonly duration_ms: number;
}

/** What hears of an exchange. Every member may be absent. */
export interface ExchangeObserver {
  /**
   * The response has left, whole or not. `route` is the path of the route, `/v1/models/{id}`;
   * "other" if there is none.
   */
  responded?(route: string, record: AccessRecord): void;
}

/**
 * Answers an exchange. Its exceptions are rendered as errors. `parameter` is the part of the path
 * that stands in the place of the route's parameter; it is empty if the route has none.
 */
export type Handler = (exchange: Exchange, parameter: string) => void | Promise<void>;

/**
 * Handlers by path, then by method. A path that ends in `{name}` matches any path that begins like
 * it; the rest, slashes included, is the parameter.
 */
export interface Routes {
  readonly [path: string]: { readonly [method: string]: Handler };
}
