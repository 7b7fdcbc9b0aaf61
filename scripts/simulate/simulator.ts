// The world of a simulation: one clock, one queue of events, one source of chance. Everything that
// happens is an event of a process, and one event runs at a time, so the same seed gives the same
// run, step by step, on any machine.

import { createHash } from "node:crypto";
import { setImmediate as realTurn } from "node:timers/promises";
import { createRandom } from "../../test/support/random.ts";

export type Random = ReturnType<typeof createRandom>;
export type Simulator = ReturnType<typeof createSimulator>;

/** A process of the world: a gateway, one of its workers, a command, or the actors. */
export type SimProcess = ReturnType<typeof newProcess>;

/** `name`: for traces, such as "gateway 2". */
const newProcess = (name: string) => ({
  name,
  /** False once it has ended or was killed. Its events are dropped from then on. */
  alive: true,
  /** Events before this time wait until then: the process is stopped (SIGSTOP). */
  stoppedUntil: 0,
  /** Immediates of a process run in their order. */
  lastImmediate: 0,
  /** Timers, sockets and descriptors that it has open, by kind. */
  open: new Map<string, number>(),
  /** Called once when the process ends, in whatever way. */
  atEnd: new Set<() => void>(),
  /** Called with an error that nothing caught. It has ended by then. */
  crashed(error: unknown): void {
    throw error;
  },
});

/** Counts one more, or one less, of what a process has open. */
export function countOpen({ open }: SimProcess, kind: string, by: 1 | -1): void {
  open.set(kind, (open.get(kind) ?? 0) + by);
}

export interface Pending {
  /** When it runs, in milliseconds since the beginning of the world. */
  at: number;
  order: number;
  readonly owner: SimProcess;
  readonly what: string;
  readonly run: () => void;
  isCancelled: boolean;
}

/** How many events a failure shows. */
const SHOWN = 50;

export interface SimulatorOptions {
  readonly seed: number;
  /** Of the wall clock, in milliseconds since 1970. */
  readonly startsAt: number;
  /** Hears each line of the trace. Absent: nobody does. */
  readonly hear?: ((line: string) => void) | undefined;
}

export function createSimulator({ seed, startsAt, hear }: SimulatorOptions) {
  const random = createRandom(seed);
  /** Events that wait, the next one last. */
  const waiting: Pending[] = [];
  const processes = new Set<SimProcess>();
  const lastLines: string[] = [];
  const hash = createHash("sha256");
  let [time, order, steps] = [0, 0, 0];
  const nobody = newProcess("nobody");
  let current = nobody;

  /** Of two events at the same time, the one that was asked for first comes first. */
  function queue(event: Pending): void {
    order += 1;
    event.order = order;
    const isLater = ({ at, order }: Pending): boolean =>
      at > event.at || (at === event.at && order > event.order);
    waiting.splice(waiting.findLastIndex(isLater) + 1, 0, event);
  }

  /** Runs `run` as an event of `owner` at a time. */
  function at(when: number, owner: SimProcess, what: string, run: () => void): Pending {
    const event = { at: when, order: 0, owner, what, run, isCancelled: false };
    queue(event);
    return event;
  }

  function note(text: string): void {
    const line = `${time.toFixed(3)} ${current.name}: ${text}`;
    lastLines.push(line);
    if (lastLines.length > 4 * SHOWN) lastLines.splice(0, lastLines.length - SHOWN);
    hash.update(line);
    hear?.(line);
  }

  /** Ends a process at once: nothing of it runs any more. */
  function end(owner: SimProcess, how: string): void {
    if (!owner.alive) return;
    note(`${owner.name} ends: ${how}`);
    owner.alive = false;
    processes.delete(owner);
    for (const listener of owner.atEnd) listener();
    owner.atEnd.clear();
  }

  /** Nothing caught it, so it ends the process whose event runs. */
  function crash(error: unknown): void {
    const owner = current;
    if (!owner.alive) return;
    end(owner, `crash: ${(error as Error)?.message}`);
    owner.crashed(error);
  }

  async function step(event: Pending): Promise<void> {
    const { owner } = event;
    if (owner.stoppedUntil > event.at) {
      event.at = owner.stoppedUntil;
      queue(event);
      return;
    }
    time = event.at;
    current = owner;
    steps += 1;
    note(event.what);
    try {
      event.run();
    } catch (error) {
      crash(error);
    }
    // Everything that follows at once, promises and next ticks, belongs to this event.
    await realTurn();
    current = nobody;
  }

  return {
    random,
    time: () => time,
    /** The wall clock of all processes, in milliseconds since 1970. */
    wallClock: () => Math.floor(startsAt + time),
    createProcess(name: string): SimProcess {
      const created = newProcess(name);
      processes.add(created);
      return created;
    },
    /** All processes that have not ended. */
    processes: (): readonly SimProcess[] => [...processes],
    at,
    /** Runs `run` as an event of `owner` after so many milliseconds. */
    after: (ms: number, owner: SimProcess, what: string, run: () => void): Pending =>
      at(time + Math.max(0, ms), owner, what, run),
    /** Runs `run` soon, after all immediates that `owner` has asked for before. */
    immediate(owner: SimProcess, what: string, run: () => void): Pending {
      owner.lastImmediate = Math.max(owner.lastImmediate, time + random.random() * 0.05);
      return at(owner.lastImmediate, owner, what, run);
    },
    end,
    note,
    /** Runs events until `isDone`, or until nothing happens any more. Returns whether it is done. */
    async runUntil(isDone: () => boolean): Promise<boolean> {
      process.on("uncaughtException", crash);
      process.on("unhandledRejection", crash);
      try {
        while (!isDone()) {
          const event = waiting.pop();
          if (!event) return false;
          if (!event.isCancelled && event.owner.alive) await step(event);
        }
        return true;
      } finally {
        process.off("uncaughtException", crash);
        process.off("unhandledRejection", crash);
      }
    },
    steps: () => steps,
    /** A hash of all lines of the trace so far. */
    fingerprint: () => hash.copy().digest("hex").slice(0, 16),
    lastLines: () => lastLines.slice(-SHOWN),
  };
}
