// The deadlines of one attempt. At most one of these runs at a time, next to total_ms for the
// attempt as a whole:
// - Before the first token: first_token_ms, never extended.
// - While streaming: idle_ms, restarted by any byte, comments included.
// - After the finish_reason: closing_ms, restarted by content only.
// connect_ms is the transport's, because only the transport knows when it connects. The request's
// own total_ms is set in chat/handler.ts. closing_ms also bounds the wait for the end of the
// connection (stream.ts).
import type { Clock, Timer } from "../clock.ts";
import { ProviderError } from "../providers/provider-error.ts";
import type { Provider } from "./model.ts";

/**
 * The body of a refusal may take so long. The status says most, and must not be lost for a body
 * that never comes.
 */
const REFUSAL_MS = 1_000;

export interface Deadlines {
  /** The request was sent: first_token_ms begins. */
  sent(): void;
  /** A piece of the reply came: idle_ms begins anew. */
  streaming(): void;
  /** Content came after the finish_reason: closing_ms begins anew. */
  closing(): void;
  /**
   * Nothing is expected of the provider for now, because the client has no room or the reply is
   * complete.
   */
  pause(): void;
  /**
   * The provider refused: only the body of the refusal is bounded. If it comes too late, the
   * attempt fails with `error`.
   */
  refused(error: () => ProviderError): void;
  /** Stops all of them. */
  clear(): void;
}

/** `expire` is called with the error of the deadline that is over. */
export function createDeadlines(
  clock: Clock,
  { timeouts, attemptMs }: Pick<Provider, "timeouts" | "attemptMs">,
  expire: (error: ProviderError) => void,
): Deadlines {
  let total: Timer | undefined;
  let current: Timer | undefined;
  let currentName = "";

  const start = (name: string, ms: number): Timer =>
    clock.after(ms, () =>
      expire(new ProviderError("upstream_timeout", `${name} of ${ms} ms is over`)),
    );

  /**
   * Restarts the timer that is running if it is the same deadline, as it is for each piece of a
   * stream.
   */
  function restart(name: "first_token_ms" | "idle_ms" | "closing_ms"): void {
    if (current && currentName === name) {
      current.refresh();
      return;
    }
    current?.cancel();
    current = start(name, timeouts[name]);
    currentName = name;
  }

  /**
   * Nothing is expected of the provider for now, because the client has no room or the reply is
   * complete.
   */
  function pause(): void {
    current?.cancel();
    current = undefined;
  }

  if (attemptMs !== undefined) total = start("total_ms", attemptMs);
  return {
    sent: (): void => restart("first_token_ms"),
    streaming: (): void => restart("idle_ms"),
    closing: (): void => restart("closing_ms"),
    pause,
    refused(error: () => ProviderError): void {
      pause();
      total?.cancel();
      total = clock.after(REFUSAL_MS, () => expire(error()));
    },
    clear(): void {
      pause();
      total?.cancel();
    },
  };
}
