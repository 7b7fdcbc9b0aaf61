// A failed attempt at a provider: what the client may learn of it, who has to act, and whether
// asking again helps (WIRE.md 4.3). A refusal is an answer other than 200, or an error inside a
// 200. The provider's text is never passed on: it may quote keys, hosts or the client's content.
import { systemClock } from "../clock.ts";
import type { ErrorCode } from "../openai/errors.ts";
import type { UsageReport } from "../openai/usage.ts";
import { asArray, asObject, asString } from "../schema/untrusted-json.ts";
import { ERROR_RULES, STATUS_BY_NAME, type ErrorRule } from "./error-rules.ts";

/** The codes that say that the client's request is the cause. */
const CLIENT_CODES = ["context_length_exceeded", "content_filter", "upstream_rejected"] as const;

/** The codes of the error table that can be the outcome of an attempt. */
export type ProviderErrorCode = Extract<
  ErrorCode,
  | "model_unavailable"
  | "model_overloaded"
  | "upstream_timeout"
  | "upstream_error"
  | (typeof CLIENT_CODES)[number]
>;

export interface ProviderErrorDetail {
  /** The HTTP status of the answer. Absent: there was none. */
  readonly status?: number;
  readonly cause?: unknown;
  /**
   * When the provider says that it may be asked again, in milliseconds from now. Absent: it does
   * not say.
   */
  readonly retryAfterMs?: number | undefined;
  /**
   * The provider's own message, unredacted: it may hold secrets. Absent: it
   * sent none.
   */
  readonly providerMessage?: string | undefined;
  /**
   * The provider refuses this gateway and not this request: its key (or its account), or something
   * else in its configuration. Absent: it does not.
   */
  readonly operator?: "key" | "other" | undefined;
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
  /** Who can do something about it. */
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
   * What the event with the error states of the tokens. It is billed like any other figure.
   * Undefined: nothing.
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
 * The most characters of an error's texts that are searched: a dozen patterns are applied to them.
 */
const MAX_CHARS = 10_000;

/** The texts of an error, as far as it has them. */
interface ErrorTexts {
  /** Its code and type. */
  readonly name: string;
  readonly message: string;
}

/**
 * The error of an answer other than 200. `body` is its JSON, or its text (or the beginning of it)
 * if it is not JSON. `now` is the wall clock in milliseconds.
 */
export function refusal(
  status: number,
  headers: { get(name: string): string | null },
  body: unknown,
  now = systemClock.now(),
): ProviderError {
  const texts = errorTexts(body);
  const rule = ERROR_RULES.find(
    (rule) => rule.status.test(String(status)) && matchesTexts(rule, texts),
  )!;
  return new ProviderError(rule.code, `the provider answered with status ${status}`, {
    status,
    operator: rule.operator,
    fromContent: rule.fromContent,
    retryAfterMs: retryAfterMs(headers.get("retry-after") ?? retryDelayIn(body), now),
    providerMessage: texts.message || undefined,
  });
}

/** Throws the ProviderError of an error inside a 200. Does nothing if there is none. */
export function throwErrorIn(json: unknown): void {
  const body = asObject(firstOf(json));
  const error = body["error"] ?? (body["object"] === "error" ? body : undefined);
  if (error === undefined || error === "") return;
  const { code, status } = asObject(error);
  // The code may be an HTTP status (OpenRouter, vLLM, Gemini) or a name.
  const stated = httpStatus(code) ?? httpStatus(status) ?? impliedStatus(errorTexts(body));
  throw refusal(stated, { get: () => null }, body);
}

function matchesTexts({ names, messages }: ErrorRule, { name, message }: ErrorTexts): boolean {
  if (!names && !messages) return true;
  if (names?.test(name)) return true;
  return messages?.some((pattern) => pattern.test(name) || pattern.test(message)) ?? false;
}

/**
 * The status that an error's texts stand for: by its name, else by a message that only refused
 * requests have.
 */
function impliedStatus({ name, message }: ErrorTexts): number {
  const named = STATUS_BY_NAME.find(({ names }) => names.test(name));
  if (named) return named.status;
  const blamesRequest = ERROR_RULES.some(
    ({ status, operator, messages }) =>
      status.test("400") && !operator && messages?.some((pattern) => pattern.test(message)),
  );
  return blamesRequest ? 400 : 500;
}

/**
 * An HTTP status of an error, as a number or in digits. Undefined for anything else, objects
 * included.
 */
function httpStatus(value: unknown): number | undefined {
  const digits = typeof value === "number" ? String(value) : asString(value);
  return digits !== undefined && /^[45]\d\d$/.test(digits) ? Number(digits) : undefined;
}

/** Some of Gemini's answers are a list of one error. */
const firstOf = (json: unknown): unknown => (Array.isArray(json) ? json[0] : json);

/** The field `error`, or the body itself. */
function errorIn(body: unknown): unknown {
  const first = firstOf(body);
  return asObject(first)["error"] ?? first;
}

/**
 * Reads `{message, type, code}`, Gemini's `{message, status}`, and the flat and bare forms that
 * some providers use.
 */
function errorTexts(body: unknown): ErrorTexts {
  const error = errorIn(body);
  const { message, detail, type, status, code = asObject(body)["code"] } = asObject(error);
  const name = `${asString(code) ?? asString(status) ?? ""} ${asString(type) ?? ""}`;
  const text = asString(error) ?? asString(message) ?? jsonText(detail);
  return { name: name.slice(0, MAX_CHARS), message: text.slice(0, MAX_CHARS) };
}

/** A value as JSON. "" if it is absent or too deep. */
function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

/** Gemini's RetryInfo, `"retryDelay": "17s"`, without its unit. "" if there is none. */
function retryDelayIn(body: unknown): string {
  const delays = asArray(asObject(errorIn(body))["details"]).map((detail) =>
    asString(asObject(detail)["retryDelay"]),
  );
  const delay = delays.find((delay) => delay !== undefined) ?? "";
  return delay.replace(/s$/, "");
}

/**
 * Retry-After, in seconds or as an HTTP date, to milliseconds from now. Undefined if it is neither.
 */
function retryAfterMs(stated: string, now: number): number | undefined {
  const text = stated.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
