// Timers on an injected clock.
import type { Clock, Timer } from "../../../core/clock.ts";

/** Calls `listener` every `ms` milliseconds until the returned function is called. */
export function repeat(clock: Clock, ms: number, listener: () => void): () => void {
  let timer = clock.after(ms, fire);
  function fire(): void {
    timer = clock.after(ms, fire);
    listener();
  }
  return () => timer.cancel();
}

/** Resolves when `work` does, or after `ms` milliseconds. Rejects if `work` rejects before. */
export async function waitAtMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = clock.after(ms, resolve);
  });
  try {
    await Promise.race([work, deadline]);
  } finally {
    timer?.cancel();
  }
}
