// Turns of the event loop for work that grows with what is sent: the body of a request, the reply
// of a provider. Such work is cut into steps, and one queue serves the whole process: only one step
// runs in a pass of the event loop, however many requests have steps to make. So a hundred large
// requests at once keep the others waiting no longer than one does.

/** Work that can stop at each `yield`. Its result is what it returns. */
export type Steps<T> = Generator<undefined, T>;

/** Ends work early: the work throws `reason`. */
type Cancellation = { readonly aborted: boolean; readonly reason: unknown };

/** A step stops at its first `yield` after so many milliseconds. */
const STEP_MS = 20;

const waiting: (() => void)[] = [];

/**
 * Resolves in a pass of the event loop in which no other step runs. Rejects then with the reason of
 * `cancel` if that is aborted.
 */
export async function ownTurn(cancel?: Cancellation): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(beginNext);
  });
  if (cancel?.aborted) throw cancel.reason;
}

/** The step itself runs right after this function, in the microtask that `resolve` makes. */
function beginNext(): void {
  const resolve = waiting.shift()!;
  if (waiting.length > 0) setImmediate(beginNext);
  resolve();
}

/** Does work that is small, all of it now. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Does work that is large, each step in a turn of its own. Throws the reason of `cancel`. */
export async function inTurns<T>(steps: Steps<T>, cancel: Cancellation): Promise<T> {
  for (;;) {
    await ownTurn(cancel);
    const startedAt = performance.now();
    do {
      const step = steps.next();
      if (step.done) return step.value;
      // At once: what the work has made so far is not kept for another turn.
      if (cancel.aborted) throw cancel.reason;
    } while (performance.now() - startedAt < STEP_MS);
  }
}
