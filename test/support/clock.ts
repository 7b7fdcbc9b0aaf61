// A clock for tests: time passes when the test says so.

import type { Clock } from "../../src/core/clock.ts";

export interface TestClock extends Clock {
  /** Lets so many milliseconds pass, and fires the timers that are due, in their order. */
  advance(ms: number): void;
  /** How many timers are set. */
  timers(): number;
}

export function createTestClock(start = 1_700_000_000_000): TestClock {
  interface Alarm {
    readonly ms: number;
    due: number;
    readonly listener: () => void;
  }
  const alarms = new Set<Alarm>();
  let elapsed = 0;

  function nextDue(until: number): Alarm | undefined {
    const due = [...alarms].filter((alarm) => alarm.due <= until);
    return due.sort((a, b) => a.due - b.due)[0];
  }

  return {
    now: () => start + elapsed,
    monotonic: () => elapsed,
    after(ms, listener) {
      const alarm = { ms, due: elapsed + ms, listener };
      alarms.add(alarm);
      return {
        refresh() {
          if (alarms.has(alarm)) alarm.due = elapsed + ms;
        },
        cancel() {
          alarms.delete(alarm);
        },
      };
    },
    advance(ms) {
      const until = elapsed + ms;
      for (let alarm = nextDue(until); alarm; alarm = nextDue(until)) {
        elapsed = alarm.due;
        alarms.delete(alarm);
        alarm.listener();
      }
      elapsed = until;
    },
    timers: () => alarms.size,
  };
}
