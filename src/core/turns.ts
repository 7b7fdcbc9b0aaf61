// Splits work on large inputs (a request's body, a provider's reply) into steps, so that it does
// not block the event loop. One queue serves the whole process: each turn of the event loop runs
// one step, however many requests have work to do. So a hundred large requests at once delay other
// requests no longer than a single one does.

/** Work that can pause at each `yield`, and returns a T. */
export type Steps<T> = Generator<undefined, T>;

/** Cancels work once `aborted` is true. The work then throws `reason`. */
type Cancellation = { readonly aborted: boolean; readonly reason: unknown };

/** A step pauses at its first `yield` after this many milliseconds. */
const STEP_MS = 20;

/** Each function starts one waiting step. */
const waiting: (() => void)[] = [];

/**
 * Waits for a turn of the event loop in which no other step runs. Rejects with the reason of
 * `cancel` if that is aborted by then.
 */
export async function waitForTurn(cancel?: Cancellation): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(beginNext);
  });
  if (cancel?.aborted) throw cancel.reason;
}

/** Starts the next waiting step, in a microtask that runs right after this function. */
function beginNext(): void {
  const resolve = waiting.shift()!;
  if (waiting.length > 0) setImmediate(beginNext);
  resolve();
}

/** Runs small work to its end, without a pause. */
export function runSync<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Runs large work, each step in a turn of its own. Rejects with the reason of `cancel`. */
export async function runInTurns<T>(steps: Steps<T>, cancel: Cancellation): Promise<T> {
  for (;;) {
    await waitForTurn(cancel);
    const startedAt = performance.now();
    do {
      const step = steps.next();
      if (step.done) return step.value;
      // Checked after every yield: partial results must not stay in memory for another turn.
      if (cancel.aborted) throw cancel.reason;
    } while (performance.now() - startedAt < STEP_MS);
  }
}
