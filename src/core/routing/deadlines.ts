// The deadlines of one attempt. At most one of these runs at a time, next to total_ms for the
// attempt as a whole:
// - Before the first token: first_token_ms, never extended.
// - While streaming: idle_ms, restarted by any byte, comments included.
// - After the finish_reason: closing_ms, restarted by content only.
// When one of these is over, bytes that have arrived meanwhile are read first: this process may
// have been busy or suspended, and only the provider's silence counts.
// connect_ms is the transport's, because only the transport knows when it connects. The request's
// own total_ms is set in chat/handler.ts. closing_ms also bounds the wait for the end of the
// connection (stream.ts).
import type { Clock, Timer } from "../clock.ts";
import { ProviderError } from "../providers/provider-error.ts";
import { waitForTurn } from "../turns.ts";
import type { Provider } from "./model.ts";

/** The time limit for the body of a refusal: the status must not be lost if the body hangs. */
const REFUSAL_MS = 1_000;

/** A class, not closures: every attempt has one, and closures took a kilobyte more. */
export class Deadlines {
  readonly #clock: Clock;
  readonly #timeouts: Provider["timeouts"];
  readonly #expire: (error: ProviderError) => void;
  #total: Timer | undefined;
  #current: Timer | undefined;
  #currentName = "";

  /** `expire` is called with the error of the deadline that is over. */
  constructor(
    clock: Clock,
    { timeouts, attemptMs: ms }: Pick<Provider, "timeouts" | "attemptMs">,
    expire: (error: ProviderError) => void,
  ) {
    this.#clock = clock;
    this.#timeouts = timeouts;
    this.#expire = expire;
    if (ms !== undefined) this.#total = clock.after(ms, () => this.#end("total_ms", ms));
  }

  /**
   * Begins a deadline in place of the running one. If that is the same deadline, as for each piece
   * of a stream, only restarts its timer.
   */
  restart(name: "first_token_ms" | "idle_ms" | "closing_ms"): void {
    if (this.#currentName === name && this.#current?.refresh()) return;
    this.pause();
    const ms = this.#timeouts[name];
    const timer = this.#clock.after(ms, () => {
      setImmediate(async () => {
        await waitForTurn(); // Bytes that have arrived may be waiting for a turn too.
        if (this.#current === timer) this.#end(name, ms);
      });
    });
    this.#current = timer;
    this.#currentName = name;
  }

  /**
   * Nothing is expected of the provider for now, because the client has no room or the reply is
   * complete.
   */
  pause(): void {
    this.#current?.cancel();
    this.#current = undefined;
  }

  /**
   * The provider refused: only the body of the refusal is bounded. If it comes too late, the
   * attempt fails with `error`.
   */
  refused(error: () => ProviderError): void {
    this.clear();
    this.#total = this.#clock.after(REFUSAL_MS, () => this.#expire(error()));
  }

  /** Stops all of them. */
  clear(): void {
    this.pause();
    this.#total?.cancel();
  }

  #end(name: string, ms: number): void {
    // While no deadline but total_ms runs, nothing is expected of the provider: the client has no
    // room, or the request waits for a free connection or for a new one. Only the wait for a new
    // one says something about the provider, but connect_ms would already have ended that wait,
    // unless it is at least as long as `ms`.
    const isBlameless = this.#currentName !== "" || ms > this.#timeouts.connect_ms;
    const detail = { fromContent: this.#current === undefined && isBlameless };
    this.#expire(new ProviderError("upstream_timeout", `${name} of ${ms} ms is over`, detail));
  }
}
