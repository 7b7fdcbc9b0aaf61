// The error of a failed attempt at a provider: its code for the client, who has to act, and whether
// a retry can help (wire.md "Provider errors"). A refusal is an answer other than 200, or an
// error inside a 200. The provider's text is never passed on: it may quote keys, hosts or the
// client's content.
import type { UsageReport } from "../openai/usage.ts";

/** The codes that say that the client's request is the cause. */
const CLIENT_CODES = ["context_length_exceeded", "content_filter", "upstream_rejected"] as const;

/** The codes of the error table that can be the outcome of an attempt. */
export type ProviderErrorCode =
  | "model_unavailable"
  | "model_overloaded"
  | "upstream_timeout"
  | "upstream_error"
  | (typeof CLIENT_CODES)[number];

export interface ProviderErrorDetail {
  /**
   * The HTTP status that the refusal has, or stands for inside a 200. `answer.status` is what was
   * on the wire. Absent: there was no refusal.
   */
  readonly status?: number | undefined;
  /** The error beneath this one: of the network, or a bug. Absent: there is none. */
  readonly cause?: unknown;
  /**
   * When the provider says that it may be asked again, in milliseconds from now. Absent: it does
   * not say.
   */
  readonly retryAfterMs?: number | undefined;
  /** The provider's own message, unredacted: it may hold secrets. Absent: it sent none. */
  readonly providerMessage?: string | undefined;
  /**
   * What the operator has to mend: the gateway's key (or its account), a model that cannot do what
   * the request needs, or something else in the configuration. Absent: nothing.
   */
  readonly operator?: "key" | "model" | "other" | undefined;
  /**
   * Whether the content of this request causes the failure, so that it says nothing about other
   * requests. Absent: the cause may be the provider's state.
   */
  readonly fromContent?: boolean | undefined;
  /**
   * Whether the same request fails at this model each time, so that it is not sent again. Absent:
   * asking again may help.
   */
  readonly permanent?: boolean;
}

/** A provider's answer to a failed attempt, redacted, for the operator only. */
export interface ProviderAnswer {
  /** The HTTP status. Undefined: no answer came. */
  readonly status: number | undefined;
  /** The path of the request's URL. Undefined: nothing redacts it. */
  readonly path: string | undefined;
  /**
   * The beginning of the provider's own message. Undefined: it sent none, or nothing redacts it.
   */
  readonly message: string | undefined;
}

/**
 * An attempt that failed. The message is for the operator's log only: it may name what a client
 * must not see.
 */
export class ProviderError extends Error {
  readonly code: ProviderErrorCode;
  /** Who has to act. */
  readonly blame: "provider" | "operator" | "client";
  /**
   * Whether the breaker counts it. One client's content must never close a model to others, so
   * neither a request that is refused as the client's mistake nor a generation that failed because
   * of its content counts.
   */
  readonly countsForBreaker: boolean;
  readonly detail: ProviderErrorDetail;
  /** Set by the attempt. Absent: the provider was not asked. */
  answer?: ProviderAnswer;
  /**
   * The token figures in the event with the error. They are billed like any other. Undefined: it
   * had none.
   */
  usage: UsageReport | undefined;
  constructor(code: ProviderErrorCode, message: string, detail: ProviderErrorDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    if (CLIENT_CODES.some((clientCode) => clientCode === code)) this.blame = "client";
    else this.blame = detail.operator ? "operator" : "provider";
    this.countsForBreaker = this.blame !== "client" && detail.fromContent !== true;
    this.detail = detail;
  }
}

/**
 * Retry-After, in seconds or as an HTTP date, to milliseconds from now. Undefined if it is neither.
 */
export function retryAfterMs(stated: string, now: number): number | undefined {
  const text = stated.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  // Date.parse takes `-5` for a month of 2001. Each form of an HTTP date has a time of day.
  const date = /\d\d:\d\d:\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
