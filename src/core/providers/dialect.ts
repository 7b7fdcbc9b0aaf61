// What a dialect is: one provider format, both directions, pure and synchronous. No I/O, no waiting: the one asynchronous
// pump (routing/attempt.ts) feeds it, and a test can cut the bytes anywhere. Then what is the same in all of them: how a reply
// ends, and what a refusal means, by a table (faults.json): HTTP status and the error's words to a code of our own and to who is
// to blame. WIRE.md 4.3. Nothing of the provider's text is passed on; it may quote keys, hosts or our client's content.
import type { ChatRequest } from "../openai/request.ts";
import {
  array,
  boolean,
  literal,
  nonEmpty,
  number,
  object,
  optional,
  record,
  refine,
} from "../schema/checker.ts";
import type { ErrorCode } from "../openai/errors.ts";
import { asArray, asObject, asString } from "../schema/untrusted-json.ts";
import type { FinishReason, Part } from "../openai/parts.ts";
import type { UsageReport } from "../openai/usage.ts";
import faultsJson from "./faults.json" with { type: "json" };
import finishReasons from "./finish-reasons.json" with { type: "json" };
import type { Traits } from "./traits.ts";

/** What a dialect needs to know of the model that is to serve; one that cannot think is never sent a thinking switch. */
export interface Target {
  readonly upstreamModel: string;
  readonly reasoning: boolean;
  readonly traits: Traits;
}

/** `push`: the parts that one event (its JSON, parsed) says; throws a ProviderError if it says that the provider failed. `ended`: whether it
 * has said that no more will come; absent: it never says so. */
export interface Decoder {
  push(event: unknown): Part[];
  readonly ended?: () => boolean;
}

type Headers = Readonly<Record<string, string>>;

export interface Dialect {
  auth(key: string): Headers; // the headers that carry the provider's key
  /** `path` is appended to the provider's base_url. */
  request(
    chat: ChatRequest,
    target: Target,
  ): { readonly path: string; readonly headers?: Headers; readonly body: object };
  isReply(json: unknown): boolean; // whether this JSON, which is no error, is a whole reply
  decoder(target: Target): Decoder; // of a stream; a whole reply is one event, and all that there is
}

/** What a whole reply says: it is there, so it is finished, if not said otherwise; throws a ProviderError if it is an error, or no reply. */
export function wholeReply({ decoder, isReply }: Dialect, json: unknown, target: Target): Part[] {
  const parts = decoder(target).push(json);
  // A provider that counts tokens has worked on this request: the generation failed, and not the provider.
  if (!isReply(json))
    throw new ProviderError("upstream_error", "the answer is no reply", {
      fromContent: parts.some(({ type }) => type === "usage"),
    });
  return parts.some(({ type }) => type === "finish")
    ? parts
    : [...parts, { type: "finish", reason: "stop" }];
}

/** The codes of the error table that can be the outcome of an attempt. */
export type ProviderErrorCode =
  | "model_unavailable"
  | "model_overloaded"
  | "upstream_timeout"
  | "upstream_error"
  | (typeof CLIENTS_FAULTS)[number];
const CLIENTS_FAULTS = [
  "context_length_exceeded",
  "content_filter",
  "upstream_rejected",
] as const satisfies readonly ErrorCode[];

export interface ProviderErrorDetail {
  readonly status?: number;
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined; // when the provider says that it may be asked again
  /** The provider's own message, as it came: it may hold secrets, so it must not go out before it is redacted (routing/redact.ts). */
  readonly said?: string | undefined;
  readonly operator?: "key" | "other" | undefined; // the provider refuses this gateway: its key, or something else of its configuration
  /** What this request says causes the failure, so it is no evidence about other requests. Absent: it may be the provider's state. */
  readonly fromContent?: boolean | undefined;
  /** The same request fails at this model in the same way each time, so it is not asked again. Absent: asking again may help. */
  readonly permanent?: boolean;
}

/** What a provider answered when an attempt at it failed: for the operator alone, without secrets. */
export interface ProviderAnswer {
  /** Of HTTP; undefined: no answer came. */
  readonly status: number | undefined;
  /** Of the URL that was asked. */
  readonly path: string;
  /** The beginning of the provider's own words; undefined: it said none. */
  readonly message: string | undefined;
}

/** An attempt that failed. The message is for the operator's log only: it may name what a client must not see. */
export class ProviderError extends Error {
  readonly code: ProviderErrorCode;
  readonly blame: "provider" | "operator" | "client";
  /** Whether the breaker counts it. One client's content must never close a model to others: neither a request that is refused
   * as the client's fault nor a generation that failed because of what the request says. */
  readonly countsForBreaker: boolean;
  readonly detail: ProviderErrorDetail;
  /** Set by the attempt; absent: the provider was not asked. */
  answer?: ProviderAnswer;
  /** What the event that carried the error states of the tokens; undefined: nothing. It is billed like any other figure. */
  usage: UsageReport | undefined;
  constructor(code: ProviderErrorCode, message: string, detail: ProviderErrorDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    if (CLIENTS_FAULTS.some((each) => each === code)) this.blame = "client";
    else this.blame = detail.operator ? "operator" : "provider";
    this.countsForBreaker = this.blame !== "client" && detail.fromContent !== true;
    this.detail = detail;
  }
}

/** `decoder`, with the usage of each event as the last of its parts. If the event is also an error, the fault carries the usage. */
export function withUsage(
  usageIn: (event: unknown) => UsageReport | undefined,
  decoder: Decoder,
): Decoder {
  return {
    ...decoder,
    push(event) {
      try {
        const parts = decoder.push(event);
        const usage = usageIn(event);
        return usage ? [...parts, { type: "usage", usage }] : parts;
      } catch (error) {
        if (error instanceof ProviderError) error.usage = usageIn(event);
        throw error;
      }
    },
  };
}

/** Text, if there is any. */
export const textPart = (type: "text" | "reasoning", text: unknown): Part[] =>
  typeof text === "string" && text !== "" ? [{ type, text }] : [];
/** Finish reasons as providers spell them, all other words mean "stop"; `failed`: the generation broke off (WIRE.md 2, 7.2, 7b);
 * `failed_on_content`: it did, and what was asked for may be the cause (a tool call that came out malformed). */
const FINISH_REASONS = record(
  literal("length", "tool_calls", "content_filter", "failed", "failed_on_content", "unfinished"),
)(finishReasons);

/** What a finish reason stands for. Gemini's OpenAI-compatible endpoint appends its own word to a general one
 * (`function_call_filter: MALFORMED_FUNCTION_CALL`): then the general one counts. */
export function finishReasonOf(
  word: unknown,
): FinishReason | "failed" | "failed_on_content" | "unfinished" {
  if (typeof word !== "string" || word === "") return "unfinished";
  const [general = word] = word.split(":", 1);
  return FINISH_REASONS.get(word) ?? FINISH_REASONS.get(general) ?? "stop";
}

/** The end of a reply, if `word` says that it is there; throws a ProviderError if that is no good one. */
export function finishPart(word: unknown): Part[] {
  const reason = finishReasonOf(word);
  if (reason === "failed" || reason === "failed_on_content")
    throw new ProviderError("upstream_error", `the provider gave up: finish_reason ${word}`, {
      fromContent: reason === "failed_on_content",
    });
  return reason === "unfinished" ? [] : [{ type: "finish", reason }];
}

/** Any of them, as regular expressions. */
const words = refine(array(nonEmpty), (list) => new RegExp(list.join("|"), "i"));
/** `names` are looked for in code and type, `words` there and in the message; one of them is enough; both absent: whatever they say.
 * A message may quote what the client sent, so words that would blame anybody but this request stand at its beginning.
 * `operator`: the provider refuses this gateway, not this request: a matter for the operator, and no use in trying again; `other`:
 * our address or our method is wrong. `content`: what this request says causes it, so the breaker does not count it. */
const rule = object(
  {
    status: refine(nonEmpty, (pattern) => new RegExp(`^(${pattern})$`)),
    names: optional(words),
    words: optional(words),
    operator: optional(literal("key", "other")),
    content: optional(boolean()),
    code: literal(
      "model_unavailable",
      "model_overloaded",
      "context_length_exceeded",
      "content_filter",
      "upstream_rejected",
      "upstream_error",
    ),
  },
  { strict: true },
);
/** Of the rules the first that fits counts; one does. `stated`: of errors inside a 200 that state no status, what their code or type stands for. */
const { rules, stated } = object({
  rules: array(rule),
  stated: array(object({ words, status: number() })),
})(faultsJson, true);

/** Throws the fault of an error inside a 200, if there is one. Its code may be an HTTP status (OpenRouter, vLLM, Gemini) or a word. */
export function throwErrorIn(json: unknown): void {
  const body = asObject(Array.isArray(json) ? json[0] : json);
  const error = body["error"] ?? (body["object"] === "error" ? body : undefined);
  if (error === undefined || error === "") return;
  const status = [asObject(error)["code"], asObject(error)["status"]]
    .map(errorStatus)
    .find((status) => status !== undefined);
  const [name, message] = errorWords(body);
  // The words are those of a rule for refused requests.
  const clients = rules.some(
    (rule) => rule.status.test("400") && !rule.operator && rule.words?.test(message),
  );
  const meant = stated.find(({ words }) => words.test(name))?.status ?? (clients ? 400 : 500);
  throw refusal(status ?? meant, { get: () => null }, body);
}

/** The fault of an answer other than 200. `body` is its JSON, or its text (or the beginning of it) if it was none. */
export function refusal(
  status: number,
  headers: { get(name: string): string | null },
  body: unknown,
): ProviderError {
  const [name, message] = errorWords(body);
  const fits = ({ names, words }: (typeof rules)[number]) =>
    (!names && !words) || names?.test(name) || words?.test(name) || words?.test(message);
  const { code, operator, content } = rules.find(
    (rule) => rule.status.test(String(status)) && fits(rule),
  )!;
  const detail = {
    status,
    operator,
    fromContent: content,
    retryAfterMs: retryAfterMs(headers.get("retry-after"), body),
    said: message || undefined,
  };
  return new ProviderError(code, `the provider answered with status ${status}`, detail);
}

/** An HTTP status of an error, as a number or in digits; undefined for anything else, objects among it. */
function errorStatus(value: unknown): number | undefined {
  const digits = typeof value === "number" ? String(value) : asString(value);
  return digits !== undefined && /^[45]\d\d$/.test(digits) ? Number(digits) : undefined;
}

/** What stands under `error`, or the body itself; some of Gemini's answers are a list. */
function errorOf(body: unknown): unknown {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  return asObject(first)["error"] ?? first;
}

/** The provider's own words for what went wrong, its code and type and then its message, as far as there are such fields:
 * `{message, type, code}`, Gemini's `{message, status}`, or the flat and bare forms that some providers use. */
function errorWords(body: unknown): readonly [name: string, message: string] {
  const error = errorOf(body);
  const { message, detail, type, status, code = asObject(body)["code"] } = asObject(error);
  const name = `${asString(code) ?? asString(status) ?? ""} ${asString(type) ?? ""}`;
  const words = asString(error) ?? asString(message) ?? jsonText(detail);
  return [name.slice(0, MAX_WORDS), words.slice(0, MAX_WORDS)];
}

/** Of an error's words so many characters are looked at: a dozen patterns are searched for in them. */
const MAX_WORDS = 10_000;

/** A value as JSON, "" if it is absent or too deep. */
function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

/** Retry-After (seconds or an HTTP date), or Gemini's RetryInfo (`"retryDelay": "17s"`), in milliseconds; undefined if there is none. */
function retryAfterMs(header: string | null, body: unknown): number | undefined {
  const delays = asArray(asObject(errorOf(body))["details"]).map((detail) =>
    asString(asObject(detail)["retryDelay"])?.replace(/s$/, ""),
  );
  const stated = (header ?? delays.find((delay) => delay !== undefined) ?? "").trim();
  if (/^\d+(\.\d+)?$/.test(stated)) return Number(stated) * 1000;
  const date = Date.parse(stated);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
