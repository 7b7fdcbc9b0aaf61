// The clocks and the timers of one process.

import { countOpen, type Pending, type SimProcess, type World } from "./world.ts";

/** Timers, and a wall clock, of one process. */
export function createTime(world: World, owner: SimProcess) {
  type Listener = (...args: unknown[]) => void;

  function createTimer(ms: number, listener: Listener, args: unknown[]) {
    let pending: Pending | undefined;
    const clear = (): void => {
      if (!pending) return;
      pending.isCancelled = true;
      pending = undefined;
      countOpen(owner, "timer", -1);
    };
    const set = (): void => {
      clear();
      countOpen(owner, "timer", 1);
      pending = world.after(Math.max(1, ms || 0), owner, "a timer", () => {
        clear();
        listener(...args);
      });
    };
    set();
    const timer = { refresh: set, unref: () => timer, clear };
    return timer;
  }

  class SimDate extends Date {
    constructor(...values: readonly unknown[]) {
      super(...((values.length === 0 ? [world.wallClock()] : values) as [number]));
    }
    static override now(): number {
      return world.wallClock();
    }
  }
  const immediately = (listener: Listener, ...args: unknown[]): Pending =>
    world.immediate(owner, "an immediate", () => listener(...args));

  const timers = {
    setTimeout: (listener: Listener, ms: number, ...args: unknown[]) =>
      createTimer(ms, listener, args),
    clearTimeout: (timer?: { clear(): void }) => timer?.clear(),
    setImmediate: immediately,
    // Nobody asks for these. Without these lines a process would have those of the machine.
    setInterval: undefined,
    clearInterval: undefined,
    clearImmediate: undefined,
  };
  const promises = {
    setTimeout: (ms: number, value?: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      new Promise((resolve, reject) => {
        const timer = createTimer(ms, () => resolve(value), []);
        signal?.addEventListener("abort", () => {
          timer.clear();
          reject(signal.reason);
        });
      }),
    setImmediate: (value?: unknown) =>
      new Promise((resolve) => {
        immediately(() => resolve(value));
      }),
  };
  const performance = { now: () => world.time() };
  const signals = {
    any: AbortSignal.any.bind(AbortSignal),
    timeout(ms: number): AbortSignal {
      const controller = new AbortController();
      createTimer(ms, () => controller.abort(new DOMException("late", "TimeoutError")), []);
      return controller.signal;
    },
  };
  return { timers, promises, performance, Date: SimDate, AbortSignal: signals };
}
