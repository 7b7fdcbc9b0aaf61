// Observers of requests: metrics, the history, traces. An extension creates one observer for each
// request when its head has been read, so it need not match events by request id. An observer must
// be quick, and must not throw.
import type { ExchangeObserver } from "./http/exchange.ts";
import type { AttemptObserver, Opening, Settlement } from "./ledger/ledger.ts";
import type { ChatRequest } from "./openai/request.ts";

/** Absent members: the observer does not need these events. */
export interface RequestObserver extends ExchangeObserver, AttemptObserver {
  /** The request asks for a reply, in any client API. It may still be refused. */
  replyRequested?(): void;
  /** The request was opened in the ledger. */
  opened?(opening: Opening, chat: ChatRequest): void;
  /** A piece of the streamed reply was sent, `ms` milliseconds after the piece before it. */
  chunkSent?(model: string, ms: number): void;
  /** The providers' part of an opened request has ended, `durationMs` after the request's check. */
  settled?(opening: Opening, settlement: Settlement, durationMs: number): void;
}

/** The observers of a request. */
export type Observers = readonly RequestObserver[];
