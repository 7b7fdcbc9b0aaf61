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

/** Waits `ms` milliseconds at most. Resolves with whether `work` is done. Rejects if it rejects. */
export async function waitAtMost(
  clock: Clock,
  ms: number,
  work: Promise<unknown>,
): Promise<boolean> {
  let timer: Timer | undefined;
  const deadline = new Promise<boolean>((resolve) => {
    timer = clock.after(ms, () => resolve(false));
  });
  try {
    return await Promise.race([work.then(() => true), deadline]);
  } finally {
    timer?.cancel();
  }
}
