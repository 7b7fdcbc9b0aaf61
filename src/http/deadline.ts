// A deadline that moves: one timer however often it is moved, so that it can be renewed for every piece of a stream.

/** `expire` is given the name and the milliseconds of the deadline that was not moved in time. */
export function createDeadline(expire: (name: string, ms: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  let firesAt = Infinity;
  let due = Infinity;
  let current = "";
  let span = 0;

  function arm(now: number): void {
    clearTimeout(timer);
    firesAt = due;
    timer = setTimeout(fire, Math.max(0, due - now));
  }

  /** A timer that was set for an earlier due time finds out here that it has been moved. */
  function fire(): void {
    firesAt = Infinity;
    if (due === Infinity) return;
    const now = performance.now();
    if (now < due) arm(now);
    else expire(current, span);
  }

  return {
    /** Expires in `ms` unless moved. */
    set(name: string, ms: number): void {
      const now = performance.now();
      current = name;
      span = ms;
      due = now + ms;
      if (due < firesAt) arm(now);
    },
    /** Does not expire until it is set again; its timer stays, so that this costs nothing. */
    pause(): void {
      due = Infinity;
    },
    /** For good. */
    clear(): void {
      due = firesAt = Infinity;
      clearTimeout(timer);
    },
  };
}
