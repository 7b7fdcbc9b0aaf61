// What a dialect is: one provider format, both directions, pure and synchronous. No I/O, no waiting: the one asynchronous
// pump (routing/attempt.ts) feeds it, and a test can cut the bytes anywhere. Then what is the same in all of them: how a reply
// ends, and what a refusal means, by a table (faults.json): HTTP status and the error's words to a code of our own and to who is
// to blame. WIRE.md 4.3. Nothing of the provider's text is passed on; it may quote keys, hosts or our client's content.
import type { ChatRequest } from "../protocol/chat-request.ts";
import {
  array,
  literal,
  nonEmpty,
  number,
  object,
  optional,
  record,
  refine,
} from "../protocol/checker.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import { asArray, asObject, asString } from "../protocol/foreign.ts";
import type { Part } from "../protocol/reply.ts";
import faultsJson from "./faults.json" with { type: "json" };
import finishReasons from "./finish-reasons.json" with { type: "json" };
import type { Traits } from "./traits.ts";

/** What a dialect needs to know of the model that is to serve; one that cannot think is never sent a thinking switch. */
export interface Target {
  readonly upstreamModel: string;
  readonly reasoning: boolean;
  readonly traits: Traits;
}

/** `push`: the parts that one event (its JSON, parsed) says; throws a ProviderFault if it says that the provider failed. `ended`: whether it
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

/** What a whole reply says: it is there, so it is finished, if not said otherwise; throws a ProviderFault if it is an error, or no reply. */
export function wholeReply({ decoder, isReply }: Dialect, json: unknown, target: Target): Part[] {
  const parts = decoder(target).push(json);
  if (!isReply(json)) throw new ProviderFault("upstream_error", "the answer is no reply");
  return parts.some(({ type }) => type === "finish")
    ? parts
    : [...parts, { type: "finish", reason: "stop" }];
}

/** The codes of the error table that can be the outcome of an attempt. */
export type FaultCode =
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

export interface FaultDetail {
  readonly status?: number;
  readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined; // when the provider says that it may be asked again
  readonly operator?: "key" | "other" | undefined; // the provider refuses this gateway: its key, or something else of its configuration
}

/** An attempt that failed. The message is for the operator's log only: it may name what a client must not see. */
export class ProviderFault extends Error {
  readonly code: FaultCode;
  readonly blame: "provider" | "operator" | "client";
  readonly detail: FaultDetail;
  constructor(code: FaultCode, message: string, detail: FaultDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    this.blame = CLIENTS_FAULTS.some((each) => each === code)
      ? "client"
      : detail.operator
        ? "operator"
        : "provider";
    this.detail = detail;
  }
}

/** Text, if there is any. */
export const textPart = (type: "text" | "reasoning", text: unknown): Part[] =>
  typeof text === "string" && text !== "" ? [{ type, text }] : [];
/** Finish reasons as providers spell them, all other words mean "stop"; `failed`: the generation broke off (WIRE.md 2, 7.2, 7b). */
const FINISH_REASONS = record(
  literal("length", "tool_calls", "content_filter", "failed", "unfinished"),
)(finishReasons);

/** The end of a reply, if `word` says that it is there; throws a ProviderFault if that is no good one. */
export function finishPart(word: unknown): Part[] {
  const reason =
    typeof word === "string" && word !== "" ? (FINISH_REASONS.get(word) ?? "stop") : "unfinished";
  if (reason === "failed")
    throw new ProviderFault("upstream_error", `the provider gave up: finish_reason ${word}`);
  return reason === "unfinished" ? [] : [{ type: "finish", reason }];
}

/** Any of them, as regular expressions. */
const words = refine(array(nonEmpty), (list) => new RegExp(list.join("|"), "i"));
/** `words` are looked for in code, type and message; absent: whatever they say. `operator`: the provider refuses this gateway, not this
 * request: a matter for the operator, and no use in trying again; `other`: our address or our method is wrong. */
const rule = object(
  {
    status: refine(nonEmpty, (pattern) => new RegExp(`^(${pattern})$`)),
    words: optional(words),
    operator: optional(literal("key", "other")),
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
    .map(Number)
    .find((status) => status >= 400 && status < 600);
  const [name, message] = errorWords(body);
  const clients = rules.some(({ words, operator }) => !operator && words?.test(message)); // the words are of a rule that blames the client
  const meant = stated.find(({ words }) => words.test(name))?.status ?? (clients ? 400 : 500);
  throw refusal(status ?? meant, { get: () => null }, body);
}

/** The fault of an answer other than 200. `body` is its JSON, or its text (or the beginning of it) if it was none. */
export function refusal(
  status: number,
  headers: { get(name: string): string | null },
  body: unknown,
): ProviderFault {
  const text = errorWords(body).join(" ");
  const { code, operator } = rules.find(
    (rule) => rule.status.test(String(status)) && (!rule.words || rule.words.test(text)),
  )!;
  const detail = { status, operator, retryAfterMs: retryAfterMs(headers.get("retry-after"), body) };
  return new ProviderFault(code, `the provider answered with status ${status}`, detail);
}

/** What stands under `error`, or the body itself; some of Gemini's answers are a list. */
function errorOf(body: unknown): unknown {
  const stated: unknown = Array.isArray(body) ? body[0] : body;
  return asObject(stated)["error"] ?? stated;
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
