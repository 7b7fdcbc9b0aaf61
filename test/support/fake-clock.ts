// A clock that stands still until a test moves it.

import type { Timer } from "../../src/core/clock.ts";

export type FakeClock = ReturnType<typeof createFakeClock>;

interface Entry {
  at: number;
  readonly ms: number;
  readonly listener: () => void;
}

/** `wall`: the start of the wall clock. The monotonic clock starts at 0. Both in milliseconds. */
export function createFakeClock(wall = 1_700_000_000_000) {
  let time = 0;
  const entries = new Set<Entry>();

  function next(until: number): Entry | undefined {
    const due = [...entries].filter(({ at }) => at <= until);
    return due.sort((a, b) => a.at - b.at)[0];
  }

  return {
    now: () => wall + time,
    monotonic: () => time,
    after(ms: number, listener: () => void): Timer {
      const entry: Entry = { at: time + ms, ms, listener };
      entries.add(entry);
      return {
        refresh() {
          entry.at = time + ms;
          return entries.has(entry);
        },
        cancel() {
          entries.delete(entry);
        },
      };
    },
    /** Moves both clocks forward, and fires the timers that are due, in order. */
    advance(ms: number): void {
      const until = time + ms;
      for (let entry = next(until); entry; entry = next(until)) {
        time = Math.max(time, entry.at);
        entries.delete(entry);
        entry.listener();
      }
      time = until;
    },
    /** Timers that have neither fired nor been cancelled. */
    pending: () => entries.size,
  };
}
