// The gates of all processes: the first process has them, and workers ask it. Where there is one
// process, it has them itself.
import cluster from "node:cluster";
import type { Clock } from "../../../core/clock.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { answerWorkers, callFirstProcess } from "../../scale/cluster/index.ts";
import type { Host, HostPart } from "../../scale/installation/index.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import { createGate, type Abort, type Bounds, type Gate } from "./gate.ts";

/** What a request wants to be let into. */
export interface Door {
  /** Unique among those of a Gates. */
  readonly name: string;
  /** What may enter it. */
  readonly bounds: Bounds;
}

/** A request that wants to be let in. */
export interface Entry extends Door {
  /** Whose request it is. */
  readonly account: string;
  /** How long it may wait for room, in milliseconds. */
  readonly waitMs: number;
  /** As in Gate.enter. */
  readonly cancel?: Abort;
}

/** Gates by the names of their doors. An entry with other bounds changes those of its gate. */
export interface Gates {
  /** As Gate.enter. Each request that was let in has to leave. */
  enter(entry: Entry): true | number | Promise<true | number>;
  /** As Gate.undo. */
  undo(door: Door, ageMs: number): void;
  /** As Gate.leave. */
  leave(door: Door, tokens: number, overloaded: boolean): void;
  /** As Gate.pause. */
  pause(door: Door, ms: number): void;
  /** Requests at once that are allowed now, by the names of bounded gates. Empty in a worker. */
  limits(): Readonly<Record<string, number>>;
}

/** The gates of this process alone. */
export function createGates(clock: Clock): Gates {
  const gates = new Map<string, { readonly gate: Gate; bounds: string }>();

  /** Those who enter bring the bounds in force; those who leave may have older ones. */
  function entered({ name, bounds }: Door): Gate {
    const text = JSON.stringify(bounds);
    const known = gates.get(name) ?? { gate: createGate(bounds, clock), bounds: text };
    gates.set(name, known);
    if (known.bounds !== text) known.gate.setBounds(bounds);
    known.bounds = text;
    return known.gate;
  }
  return {
    enter: (entry) => entered(entry).enter(entry.account, entry.waitMs, entry.cancel),
    undo: ({ name }, ageMs) => gates.get(name)?.gate.undo(ageMs),
    leave: ({ name }, tokens, overloaded) => gates.get(name)?.gate.leave(tokens, overloaded),
    pause: ({ name }, ms) => gates.get(name)?.gate.pause(ms),
    limits: () =>
      Object.fromEntries(
        [...gates].flatMap(([name, { gate }]) =>
          gate.limit() < Infinity ? [[name, gate.limit()]] : [],
        ),
      ),
  };
}

/** What a worker asks the first process. `number`: names the question in the worker. */
type Question = Omit<Entry, "cancel"> & { readonly number: number };

/**
 * What a worker tells the first process: that a request has left, that there is a pause, or that
 * the client of a question has left.
 */
type Note =
  | { readonly gone: number }
  | { readonly door: Door; readonly undoneMs: number }
  | { readonly door: Door; readonly tokens: number; readonly overloaded: boolean }
  | { readonly door: Door; readonly pauseMs: number };

/** The gates as a process reaches them. `subject`: names these among those of other extensions. */
export function gatesFor(
  { clock, on }: Pick<GatewayContext, "clock" | "on">,
  subject: string,
): Gates {
  if (!cluster.isWorker) return createGates(clock);
  const first = callFirstProcess<Question, Note, true | number>(subject);
  on("close", first.close);
  let asked = 0;
  return {
    enter({ cancel, ...entry }) {
      asked += 1;
      const number = asked;
      const answer = first.ask({ ...entry, number });
      const detach = entry.waitMs > 0 && cancel?.onAbort(() => first.tell({ gone: number }));
      return detach ? answer.finally(detach) : answer;
    },
    undo: ({ name, bounds }, undoneMs) => first.tell({ door: { name, bounds }, undoneMs }),
    leave: ({ name, bounds }, tokens, overloaded) =>
      first.tell({ door: { name, bounds }, tokens, overloaded }),
    pause: ({ name, bounds }, pauseMs) => first.tell({ door: { name, bounds }, pauseMs }),
    limits: () => ({}),
  };
}

/** Answers the workers, if there are any. The requests of a dead worker have left. */
export function serveGates(subject: string, { clock }: Host): HostPart {
  const gates = createGates(clock);
  /** What the requests of each worker have entered, by its id. */
  const inside = new Map<number, Door[]>();

  /** What the workers' clients wait for, by worker and number. */
  const waiting = new Map<string, Cancel>();

  async function answer({ number, ...entry }: Question, worker: number): Promise<true | number> {
    const entered = inside.get(worker) ?? [];
    inside.set(worker, entered);
    const cancel = new Cancel();
    waiting.set(`${worker} ${number}`, cancel);
    const answered = await gates.enter({ ...entry, cancel });
    waiting.delete(`${worker} ${number}`);
    if (answered !== true) return answered;
    entered.push(entry);
    if (!inside.has(worker)) gates.leave(entry, 0, false); // the worker has died meanwhile
    return true;
  }
  function hear(note: Note, worker: number): void {
    if ("gone" in note) {
      waiting.get(`${worker} ${note.gone}`)?.abort();
      return;
    }
    if ("pauseMs" in note) {
      gates.pause(note.door, note.pauseMs);
      return;
    }
    if ("undoneMs" in note) gates.undo(note.door, note.undoneMs);
    else gates.leave(note.door, note.tokens, note.overloaded);
    const entered = inside.get(worker) ?? [];
    const at = entered.findIndex(({ name }) => name === note.door.name);
    if (at !== -1) entered.splice(at, 1);
  }
  function ended(worker: number): void {
    for (const door of inside.get(worker) ?? []) gates.leave(door, 0, false);
    inside.delete(worker);
  }
  const close = answerWorkers<Question, Note, true | number>(subject, { answer, hear, ended });
  return { report: gates.limits, close };
}
