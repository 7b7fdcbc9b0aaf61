// The world of a simulation: one clock, one queue of events, one source of chance. Everything that
// happens is an event of a process, and one event runs at a time, so the same seed gives the same
// run, step by step, on any machine.

import { createHash } from "node:crypto";
import { setImmediate as realTurn } from "node:timers/promises";
import { createRandom } from "../../test/support/random.ts";

export type Random = ReturnType<typeof createRandom>;

/** A process of the world: a gateway, one of its workers, a command, or the actors. */
export interface SimProcess {
  /** For traces: "gateway 2". */
  readonly name: string;
  /** False once it has ended or was killed. Its events are dropped from then on. */
  alive: boolean;
  /** Events before this time wait until then: the process is stopped (SIGSTOP). */
  stoppedUntil: number;
  /** Immediates of a process run in their order. */
  lastImmediate: number;
  /** Timers, sockets and descriptors that it has open, by kind. */
  readonly open: Map<string, number>;
  /** Called once when the process ends, in whatever way. */
  readonly atEnd: Set<() => void>;
  /** Called with an error that nothing caught. It has ended by then. */
  crashed: (error: unknown) => void;
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

export interface World {
  readonly random: Random;
  time(): number;
  /** The wall clock of all processes, in milliseconds since 1970. */
  wallClock(): number;
  createProcess(name: string): SimProcess;
  /** All processes that have not ended. */
  processes(): readonly SimProcess[];
  /** Runs `run` as an event of `owner` at a time. Of two at one time the first asked for is first. */
  at(when: number, owner: SimProcess, what: string, run: () => void): Pending;
  /** Runs `run` as an event of `owner` after so many milliseconds. */
  after(ms: number, owner: SimProcess, what: string, run: () => void): Pending;
  /** Runs `run` soon, after all immediates that `owner` has asked for before. */
  immediate(owner: SimProcess, what: string, run: () => void): Pending;
  /** Ends a process at once: nothing of it runs any more. */
  end(owner: SimProcess, how: string): void;
  note(text: string): void;
  /** Runs events until `isDone`, or until nothing happens any more. Returns whether it is done. */
  runUntil(isDone: () => boolean): Promise<boolean>;
  steps(): number;
  /** A hash of all lines of the trace so far. */
  fingerprint(): string;
  lastLines(): readonly string[];
}

/** Events that wait: the earliest first, of two at one time that which was asked for first. */
function createQueue() {
  /** The next one is last. */
  const waiting: Pending[] = [];
  const isBefore = (one: Pending, other: Pending): boolean =>
    one.at < other.at || (one.at === other.at && one.order < other.order);
  return {
    push(event: Pending): void {
      let [from, to] = [0, waiting.length];
      while (from < to) {
        const middle = (from + to) >> 1;
        if (isBefore(event, waiting[middle]!)) from = middle + 1;
        else to = middle;
      }
      waiting.splice(from, 0, event);
    },
    pop: () => waiting.pop(),
  };
}

/** The lines of a run, of which only the last are kept, with a fingerprint of all. */
function createTrace() {
  const lines: string[] = [];
  const hash = createHash("sha256");
  return {
    add(line: string): void {
      lines.push(line);
      if (lines.length > 4 * SHOWN) lines.splice(0, lines.length - SHOWN);
      hash.update(line);
    },
    fingerprint: () => hash.copy().digest("hex").slice(0, 16),
    last: () => lines.slice(-SHOWN),
  };
}

export interface WorldOptions {
  readonly seed: number;
  /** Of the wall clock, in milliseconds since 1970. */
  readonly startsAt: number;
  /** Hears each line of the trace. Absent: nobody does. */
  readonly hear?: ((line: string) => void) | undefined;
}

export function createWorld({ seed, startsAt, hear }: WorldOptions): World {
  const random = createRandom(seed);
  const queue = createQueue();
  const trace = createTrace();
  const processes = new Set<SimProcess>();
  let time = 0;
  let order = 0;
  let steps = 0;
  const nobody = createProcess("nobody");
  let current = nobody;

  function createProcess(name: string): SimProcess {
    const created: SimProcess = {
      name,
      alive: true,
      stoppedUntil: 0,
      lastImmediate: 0,
      open: new Map(),
      atEnd: new Set(),
      crashed: (error) => {
        throw error;
      },
    };
    processes.add(created);
    return created;
  }

  function at(when: number, owner: SimProcess, what: string, run: () => void): Pending {
    order += 1;
    const event = { at: when, order, owner, what, run, isCancelled: false };
    queue.push(event);
    return event;
  }

  const after: World["after"] = (ms, owner, what, run) =>
    at(time + Math.max(0, ms), owner, what, run);

  function note(text: string): void {
    const line = `${time.toFixed(3)} ${current.name}: ${text}`;
    trace.add(line);
    hear?.(line);
  }

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
      order += 1;
      event.order = order;
      queue.push(event);
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
    wallClock: () => Math.floor(startsAt + time),
    createProcess,
    processes: () => [...processes],
    at,
    after,
    immediate(owner, what, run) {
      owner.lastImmediate = Math.max(owner.lastImmediate, time + random.random() * 0.05);
      return at(owner.lastImmediate, owner, what, run);
    },
    end,
    note,
    async runUntil(isDone) {
      process.on("uncaughtException", crash);
      process.on("unhandledRejection", crash);
      try {
        while (!isDone()) {
          const event = queue.pop();
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
    fingerprint: trace.fingerprint,
    lastLines: trace.last,
  };
}

/** Counts one more, or one less, of what a process has open. */
export function countOpen({ open }: SimProcess, kind: string, by: 1 | -1): void {
  open.set(kind, (open.get(kind) ?? 0) + by);
}
