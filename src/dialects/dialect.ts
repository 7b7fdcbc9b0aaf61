// What a dialect is: one provider format, both directions, pure and synchronous. No I/O, no waiting: the one asynchronous
// pump (routing/attempt.ts) feeds it, and a test can cut the bytes anywhere and replay them.
import type { ChatRequest } from "../protocol/chat-request.ts";
import type { ErrorCode } from "../protocol/errors.ts";
import type { Part } from "../protocol/reply.ts";

/** What a dialect needs to know of the model that is to serve; one that cannot think is never sent a thinking switch. */
export interface Target { readonly upstreamModel: string; readonly reasoning: boolean }

export interface Decoder {
  /** The parts that one event (its JSON, parsed) says; throws a ProviderFault if it says that the provider failed. */
  push(event: unknown): Part[];
}

export interface Dialect {
  /** `path` is appended to the provider's base_url. */
  request(chat: ChatRequest, target: Target): { path: string; headers: Readonly<Record<string, string>>; body: string };
  /** A whole reply's JSON; throws a ProviderFault if it is an error, or no reply at all. */
  reply(json: unknown): Part[];
  decoder(): Decoder;
  /** What an answer other than 200 means. `body` is its JSON, or its text (or the beginning of it) if it was none. */
  error(status: number, headers: { get(name: string): string | null }, body: unknown): ProviderFault;
}

/** The codes of the error table that can be the outcome of an attempt. */
export type FaultCode = Extract<
  ErrorCode,
  | "model_unavailable" | "model_overloaded" | "upstream_timeout" | "upstream_error"
  | "context_length_exceeded" | "content_filter" | "upstream_rejected"
>;

const CLIENTS_FAULTS: readonly FaultCode[] = ["context_length_exceeded", "content_filter", "upstream_rejected"];

export interface FaultDetail {
  readonly status?: number; readonly cause?: unknown;
  /** When the provider says that it may be asked again. */
  readonly retryAfterMs?: number | undefined;
  /** The provider refuses this gateway: its key, or something else of its configuration. */
  readonly operator?: "key" | "other" | undefined;
}

/** An attempt that failed. The message is for the operator's log only: it may name what a client must not see. */
export class ProviderFault extends Error {
  readonly code: FaultCode; readonly blame: "provider" | "operator" | "client"; readonly detail: FaultDetail;
  constructor(code: FaultCode, message: string, detail: FaultDetail = {}) {
    super(message, { cause: detail.cause });
    this.code = code;
    this.blame = CLIENTS_FAULTS.includes(code) ? "client" : detail.operator ? "operator" : "provider";
    this.detail = detail;
  }
}
