// A deadline that moves: one timer however often it is moved, so that it can be renewed for every piece of a stream.

export interface Deadline {
  /** Expires in `ms` unless moved; `name` is given to the handler then. */
  set(name: string, ms: number): void;
  /** Does not expire until it is set again; its timer stays, so that this costs nothing. */
  pause(): void;
  /** For good. */
  clear(): void;
}

export function createDeadline(expire: (name: string, ms: number) => void): Deadline {
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
    set(name, ms) {
      const now = performance.now();
      current = name;
      span = ms;
      due = now + ms;
      if (due < firesAt) arm(now);
    },
    pause() {
      due = Infinity;
    },
    clear() {
      due = Infinity;
      firesAt = Infinity;
      clearTimeout(timer);
    },
  };
}
