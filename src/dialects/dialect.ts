// What a dialect is: one provider format, both directions, pure and synchronous. No I/O, no waiting: the one asynchronous
// pump (routing/attempt.ts) feeds it, and a test can cut the bytes anywhere. What a refusal means is in faults.ts, for all.
import type { ChatRequest } from "../protocol/chat-request.ts";
import { literal, record } from "../protocol/checker.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { Part } from "../protocol/reply.ts";
import finishReasons from "./finish-reasons.json" with { type: "json" };
import type { Traits } from "./traits.ts";

/** What a dialect needs to know of the model that is to serve; one that cannot think is never sent a thinking switch. */
export interface Target { readonly upstreamModel: string; readonly reasoning: boolean; readonly traits: Traits }

/** `push`: the parts that one event (its JSON, parsed) says; throws a ProviderFault if it says that the provider failed. `ended`: whether it
 * has said that no more will come; absent: it never says so. */
export interface Decoder { push(event: unknown): Part[]; readonly ended?: () => boolean }

type Headers = Readonly<Record<string, string>>;

export interface Dialect {
  auth(key: string): Headers; // the headers that carry the provider's key
  /** `path` is appended to the provider's base_url. */
  request(chat: ChatRequest, target: Target): { readonly path: string; readonly headers?: Headers; readonly body: object };
  isReply(json: unknown): boolean; // whether this JSON, which is no error, is a whole reply
  decoder(target: Target): Decoder; // of a stream; a whole reply is one event, and all that there is
}

/** What a whole reply says: it is there, so it is finished, if not said otherwise; throws a ProviderFault if it is an error, or no reply. */
export function wholeReply({ decoder, isReply }: Dialect, json: unknown, target: Target): Part[] {
  const parts = decoder(target).push(json);
  if (!isReply(json)) throw new ProviderFault("upstream_error", "the answer is no reply");
  return parts.some(({ type }) => type === "finish") ? parts : [...parts, { type: "finish", reason: "stop" }];
}

/** The codes of the error table that can be the outcome of an attempt. */
export type FaultCode = "model_unavailable" | "model_overloaded" | "upstream_timeout" | "upstream_error" | (typeof CLIENTS_FAULTS)[number];
const CLIENTS_FAULTS = ["context_length_exceeded", "content_filter", "upstream_rejected"] as const satisfies readonly ErrorCode[];

export interface FaultDetail {
  readonly status?: number; readonly cause?: unknown;
  readonly retryAfterMs?: number | undefined; // when the provider says that it may be asked again
  readonly operator?: "key" | "other" | undefined; // the provider refuses this gateway: its key, or something else of its configuration
}

/** An attempt that failed. The message is for the operator's log only: it may name what a client must not see. */
export class ProviderFault extends Error {
  readonly code: FaultCode; readonly blame: "provider" | "operator" | "client"; readonly detail: FaultDetail;
  constructor(code: FaultCode, message: string, detail: FaultDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    this.blame = CLIENTS_FAULTS.some((each) => each === code) ? "client" : detail.operator ? "operator" : "provider";
    this.detail = detail;
  }
}

/** Text, if there is any. */
export const textPart = (type: "text" | "reasoning", text: unknown): Part[] => (typeof text === "string" && text !== "" ? [{ type, text }] : []);
/** Finish reasons as providers spell them, all other words mean "stop"; `failed`: the generation broke off (WIRE.md 2, 7.2, 7b). */
const FINISH_REASONS = record(literal("length", "tool_calls", "content_filter", "failed", "unfinished"))(finishReasons);

/** The end of a reply, if `word` says that it is there; throws a ProviderFault if that is no good one. */
export function finishPart(word: unknown): Part[] {
  const reason = typeof word === "string" && word !== "" ? (FINISH_REASONS.get(word) ?? "stop") : "unfinished";
  if (reason === "failed") throw new ProviderFault("upstream_error", `the provider gave up: finish_reason ${word}`);
  return reason === "unfinished" ? [] : [{ type: "finish", reason }];
}
