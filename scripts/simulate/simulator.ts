// The core of the simulation: one clock, one queue of events, one source of chance. Everything that
// happens is an event of a process, and one event runs at a time, so a seed determines the whole
// run, event by event, on any machine.

import { createHash } from "node:crypto";
import { setImmediate as realTurn } from "node:timers/promises";
import { createRandom } from "../../test/support/random.ts";

/** The source of chance. */
export type Random = ReturnType<typeof createRandom>;
/** The core of one simulation. */
export type Simulator = ReturnType<typeof createSimulator>;

/** A simulated process: a gateway, one of its workers, a command, a server, or the actors. */
export type SimProcess = ReturnType<typeof newProcess>;

/** `name`: its name in the trace, such as "gateway 2". */
const newProcess = (name: string) => ({
  name,
  /** False once it has ended or was killed. Its events are dropped from then on. */
  alive: true,
  /** The process is suspended (SIGSTOP): its events wait until this time. */
  stoppedUntil: 0,
  /** The time of its last immediate, because immediates of a process run in order. */
  lastImmediate: 0,
  /** The number of its open timers, sockets and files, by kind. */
  open: new Map<string, number>(),
  /** Called when the process ends in any way. */
  atEnd: new Set<() => void>(),
  /** Called after the process has ended by an uncaught error. */
  crashed(error: unknown): void {
    throw error;
  },
});

/** Counts what a process opens (1) or closes (-1). */
export function countOpen({ open }: SimProcess, kind: string, by: 1 | -1): void {
  open.set(kind, (open.get(kind) ?? 0) + by);
}

/** An event that waits in the queue. */
export interface Pending {
  /** When it runs, in milliseconds of simulated time. */
  at: number;
  order: number;
  readonly owner: SimProcess;
  readonly what: string;
  readonly run: () => void;
  isCancelled: boolean;
}

/** The number of events that a failed run prints. */
const SHOWN = 50;

/** How to start a simulation. */
export interface SimulatorOptions {
  readonly seed: number;
  /** The wall clock at the start, in milliseconds since 1970. */
  readonly startsAt: number;
  /** Called with each line of the trace. Absent: the trace is not printed. */
  readonly trace?: ((line: string) => void) | undefined;
}

/** Creates a simulation without processes. */
export function createSimulator({ seed, startsAt, trace }: SimulatorOptions) {
  const random = createRandom(seed);
  /** The queue, with the next event at its end. */
  const waiting: Pending[] = [];
  const processes = new Set<SimProcess>();
  const lastLines: string[] = [];
  const hash = createHash("sha256");
  let [time, order, steps] = [0, 0, 0];
  const nobody = newProcess("nobody");
  let current = nobody;

  /** Events at the same time run in the order in which they were queued. */
  function queue(event: Pending): void {
    order += 1;
    event.order = order;
    const isLater = ({ at, order }: Pending): boolean =>
      at > event.at || (at === event.at && order > event.order);
    waiting.splice(waiting.findLastIndex(isLater) + 1, 0, event);
  }

  /** Queues `run` as an event of `owner` for the time `when`. */
  function at(when: number, owner: SimProcess, what: string, run: () => void): Pending {
    const event = { at: when, order: 0, owner, what, run, isCancelled: false };
    queue(event);
    return event;
  }

  /** Adds a line to the trace. */
  function note(text: string): void {
    const line = `${time.toFixed(3)} ${current.name}: ${text}`;
    lastLines.push(line);
    if (lastLines.length > 4 * SHOWN) lastLines.splice(0, lastLines.length - SHOWN);
    hash.update(line);
    trace?.(line);
  }

  /** Ends a process at once. None of its events runs any more. */
  function end(owner: SimProcess, how: string): void {
    if (!owner.alive) return;
    note(`${owner.name} ends: ${how}`);
    owner.alive = false;
    processes.delete(owner);
    for (const listener of owner.atEnd) listener();
    owner.atEnd.clear();
  }

  /** Ends the process whose event threw an error that nothing caught. */
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
    // Promises and next ticks that follow belong to this event, so wait for them.
    await realTurn();
    current = nobody;
  }

  return {
    random,
    time: () => time,
    /** The wall clock in milliseconds since 1970. */
    wallClock: () => Math.floor(startsAt + time),
    createProcess(name: string): SimProcess {
      const created = newProcess(name);
      processes.add(created);
      return created;
    },
    /** All processes that have not ended. */
    processes: (): readonly SimProcess[] => [...processes],
    at,
    /** Queues `run` as an event of `owner` after so many milliseconds. */
    after: (ms: number, owner: SimProcess, what: string, run: () => void): Pending =>
      at(time + Math.max(0, ms), owner, what, run),
    /** Queues `run` to run soon, after all earlier immediates of `owner`. */
    immediate(owner: SimProcess, what: string, run: () => void): Pending {
      owner.lastImmediate = Math.max(owner.lastImmediate, time + random.random() * 0.05);
      return at(owner.lastImmediate, owner, what, run);
    },
    end,
    note,
    /** Runs events until `isDone`, or until the queue is empty. Returns whether it is done. */
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
    /** The hash of the trace so far, by which two runs are compared. */
    fingerprint: () => hash.copy().digest("hex").slice(0, 16),
    /** The end of the trace. */
    lastLines: () => lastLines.slice(-SHOWN),
  };
}
