// The meaning of a refusal or of an error inside a reply: its status and its words, by the rules.
// Reads the forms that errors have at all known providers. wire.md "Provider errors".
import { systemClock } from "../../../core/clock.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import {
  asArray,
  asObject,
  asString,
  asTokenCount,
  parseJson,
} from "../../../core/schema/untrusted-json.ts";
import { statedWait } from "./wait-times.ts";
import { ERROR_RULES, STATUS_BY_NAME, type ErrorRule } from "./error-rules.ts";

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
 * The error of an answer other than 200. `written` is its JSON, or its text (or the beginning of
 * it) if it is not JSON. `now` is the wall clock in milliseconds.
 */
export function refusal(
  status: number,
  headers: { get(name: string): string | null },
  written: unknown,
  now = systemClock.now(),
): ProviderError {
  const body = eventIn(written) ?? written;
  const texts = errorTexts(body);
  const rule = ERROR_RULES.find(
    (rule) => rule.status.test(String(status)) && matchesTexts(rule, texts),
  )!;
  const coding = headers.get("content-encoding");
  // The pooled client decompresses nothing, the built-in fetch does.
  const isCompressed = coding !== null && texts.message.includes("\ufffd");
  return new ProviderError(rule.code, `the provider answered with status ${status}`, {
    status,
    operator: rule.operator,
    fromContent: rule.fromContent,
    retryAfterMs: statedWait(headers, retryDelayIn(body), now),
    providerMessage: isCompressed
      ? `a text that is compressed (${coding}) although identity was asked for`
      : texts.message || undefined,
  });
}

/** Matches a text that is an event, but not one that quotes the beginning of an event. */
const EVENT = /^((id|event)?:.*\r?\n)*data: ?(\{.*)/;

/** The JSON in the text of an event, with which Alibaba refuses a stream. Undefined: it is none. */
const eventIn = (text: unknown): unknown => parseJson(EVENT.exec(asString(text) ?? "")?.[3] ?? "");

/** Throws the ProviderError of an error inside a 200. Does nothing if there is none. */
export function throwErrorIn(json: unknown): void {
  const error = statedError(json);
  if (error === undefined) return;
  const { code, status, http_code } = asObject(error);
  // The code may be an HTTP status (OpenRouter, vLLM, Gemini) or a name.
  const stated = httpStatus(code) ?? httpStatus(status) ?? httpStatus(http_code);
  throw refusal(stated ?? impliedStatus(errorTexts(json)), { get: () => null }, json);
}

function matchesTexts({ names, messages }: ErrorRule, { name, message }: ErrorTexts): boolean {
  if (!names && !messages) return true;
  if (names?.test(name)) return true;
  return messages?.some((pattern) => pattern.test(name) || pattern.test(message)) ?? false;
}

/** The status that an error's texts stand for: 400 if only refused requests have such texts. */
function impliedStatus(texts: ErrorTexts): number {
  const named = STATUS_BY_NAME.find(({ names }) => names.test(texts.name));
  if (named) return named.status;
  const blamesRequest = ERROR_RULES.some(
    (rule) =>
      rule.messages && !rule.operator && rule.status.test("400") && matchesTexts(rule, texts),
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

/**
 * The error in a body: the body itself, or one of its fields. MiniMax states a number next to the
 * reply; 0 is success. Undefined: there is no error.
 */
function statedError(json: unknown): unknown {
  const body = asObject(firstOf(json));
  const { status_code, status_msg: message } = asObject(body["base_resp"]);
  if ((asTokenCount(status_code) ?? 0) > 0)
    return { code: `base_resp ${String(status_code)}`, message };
  // Groq states the reason for an early stop in the last event of a stream.
  const error = body["error"] || asObject(body["x_groq"])["error"];
  const isFlat = Boolean(asString(body["message"])) && isFault(body["code"]) && !body["choices"];
  const isError = body["object"] === "error" || body["type"] === "error" || isFlat;
  // Some servers have an empty error in each reply.
  const isNothing = Object.values(asObject(error)).every((value) => !value);
  if (typeof error === "object" && isNothing && Array.isArray(body["choices"])) return undefined;
  return error || (isError ? body : undefined);
}

/** Whether the code next to a message marks it as an error. */
const isFault = (code: unknown): boolean =>
  typeof code === "number" ? code !== 0 && Math.floor(code / 100) !== 2 : Boolean(asString(code));

/** The error that a body states, else the body itself. */
const errorIn = (body: unknown): unknown => statedError(body) ?? firstOf(body);

/**
 * Reads `{message, type, code}`, Gemini's `{message, status}`, and the flat and bare forms that
 * some providers use.
 */
function errorTexts(body: unknown): ErrorTexts {
  const error = errorIn(body);
  const stated = asObject(error);
  const { message, type, status, code = asObject(body)["code"] } = stated;
  const { detail = stated["errors"] } = stated;
  const first = asObject(firstOf(detail))["message"]; // Cloudflare's errors are a list
  // More specific codes of Anthropic and OpenRouter.
  const { error_code } = asObject(stated["details"]);
  // Xiaomi has only one message, and explains it in `param`.
  const { originalMessage = message === "Param Incorrect" ? stated["param"] : undefined } = stated;
  const { reason, error_type, raw = originalMessage } = asObject(stated["metadata"]);
  const words = [code, status, error_code, reason, error_type].map(asString);
  const name = `${words.find((word) => word !== undefined) ?? ""} ${asString(type) ?? ""}`;
  const texts = [error, message, detail, first].map(asString);
  const own = texts.find((text) => text !== undefined) ?? jsonText(detail);
  // The error of the server behind this one (OpenRouter, Bedrock).
  const behind = asString(raw) ?? jsonText(raw ?? undefined);
  const text = behind === "" ? own : `${own}: ${behind}`;
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

/**
 * Gemini's RetryInfo, `"retryDelay": "17s"`, without its unit, or OpenRouter's seconds, which an
 * error inside a 200 has too. "" if there is none.
 */
function retryDelayIn(body: unknown): string {
  const { details, metadata } = asObject(errorIn(body));
  const delays = asArray(details).map((detail) => asString(asObject(detail)["retryDelay"]));
  const seconds = asTokenCount(asObject(metadata)["retry_after_seconds"]);
  const delay = delays.find((delay) => delay !== undefined) ?? String(seconds ?? "");
  return delay.replace(/s$/, "");
}
