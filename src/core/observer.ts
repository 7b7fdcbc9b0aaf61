// What metrics and other extensions hear of the gateway's work, while it is done. A listener must
// be quick, and must not throw.
import type { AccessRecord } from "./http/access-log.ts";
import type { Opening, Settlement } from "./ledger/ledger.ts";
import type { ChatRequest } from "./openai/request.ts";

/** Every member may be absent: the extension does not need to know. */
export interface Observer {
  /**
   * A response has left, whole or not. `route` is the path of the route, `/v1/models/{id}`; "other"
   * if there is none.
   */
  responded?(route: string, record: AccessRecord): void;
  /** A piece of a stream was sent, `ms` milliseconds after the one before it. */
  chunkSent?(model: string, ms: number): void;
  /** A request is opened in the ledger. `settled` gets the same opening. */
  opened?(opening: Opening, chat: ChatRequest): void;
  /** A request that was opened in the ledger has ended, `durationMs` after it began. */
  settled?(opening: Opening, settlement: Settlement, durationMs: number): void;
  /** A line of a log was dropped, because its reader is behind. */
  lineDropped?(log: "access" | "diagnostics"): void;
}

/** One observer that calls them all. */
export function joinObservers(observers: readonly Observer[]): Observer {
  return {
    responded(route, record) {
      for (const observer of observers) observer.responded?.(route, record);
    },
    chunkSent(model, ms) {
      for (const observer of observers) observer.chunkSent?.(model, ms);
    },
    opened(opening, chat) {
      for (const observer of observers) observer.opened?.(opening, chat);
    },
    settled(opening, settlement, durationMs) {
      for (const observer of observers) observer.settled?.(opening, settlement, durationMs);
    },
    lineDropped(log) {
      for (const observer of observers) observer.lineDropped?.(log);
    },
  };
}
