// Events of the gateway's work, for metrics and other extensions, while it is done. A listener must
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
  const names = ["responded", "chunkSent", "opened", "settled", "lineDropped"] as const;
  return Object.fromEntries(names.map((name) => [name, callAll(observers, name)]));
}

/** Undefined: none of them listens. */
function callAll(observers: readonly Observer[], name: keyof Observer) {
  const listening = observers.filter((observer) => observer[name] !== undefined);
  if (listening.length === 0) return undefined;
  return (...values: unknown[]): void => {
    for (const observer of listening) (observer[name] as (...all: unknown[]) => void)(...values);
  };
}
