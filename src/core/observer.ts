// What hears of one request: metrics, the history, traces. An extension makes one object a request
// when its head is read, so nobody joins events by request id. A listener must be quick, and must
// not throw.
import type { ExchangeObserver } from "./http/exchange.ts";
import type { AttemptObserver, Opening, Settlement } from "./ledger/ledger.ts";
import type { ChatRequest } from "./openai/request.ts";

/** Every member may be absent: this observer does not need to know. */
export interface RequestObserver extends ExchangeObserver, AttemptObserver {
  /** It asks for a reply, in whichever client API. It may still be refused. */
  asked?(): void;
  /** It is opened in the ledger. */
  opened?(opening: Opening, chat: ChatRequest): void;
  /** A piece of its stream was sent, `ms` milliseconds after the one before it. */
  chunkSent?(model: string, ms: number): void;
  /** After `opened`: it has ended at the providers, `durationMs` after its opening. */
  settled?(opening: Opening, settlement: Settlement, durationMs: number): void;
}

/** The observers of a request. */
export type Observers = readonly RequestObserver[];
