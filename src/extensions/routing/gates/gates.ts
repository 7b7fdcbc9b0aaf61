// The gates of all processes: the first process has them, and workers ask it. Where there is one
// process, it has them itself.
import cluster from "node:cluster";
import type { Clock } from "../../../core/clock.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { answerWorkers, callFirstProcess } from "../../scale/cluster/index.ts";
import type { Host, HostPart } from "../../scale/installation/index.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import { createGate, type Entry, type Gate, type LocalGate } from "./gate.ts";

export interface Gates {
  /** The gate of this name, which lets anybody in until a request brings bounds. */
  of(name: string): Gate;
  /** Requests at once that are allowed now, by the names of bounded gates. Empty in a worker. */
  limits(): Readonly<Record<string, number>>;
}

/** The gates of this process alone. */
export function createGates(clock: Clock): Gates {
  const gates = new Map<string, LocalGate>();
  return {
    of(name) {
      const gate = gates.get(name) ?? createGate(clock);
      gates.set(name, gate);
      return gate;
    },
    limits: () =>
      Object.fromEntries(
        [...gates].flatMap(([name, gate]) =>
          gate.limit() < Infinity ? [[name, gate.limit()]] : [],
        ),
      ),
  };
}

/** What a worker asks the first process about the gate of this name. */
interface Question extends Omit<Entry, "cancel"> {
  readonly name: string;
  /** Names the question in the worker. */
  readonly number: number;
}

/**
 * What a worker tells the first process: that the client of a question has left, that a request was
 * not made or has left, or that there is a pause.
 */
type Note =
  | { readonly gone: number }
  | { readonly name: string; readonly undoneMs: number }
  | { readonly name: string; readonly tokens: number; readonly overloaded: boolean }
  | { readonly name: string; readonly pauseMs: number };

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
    of: (name) => ({
      enter({ cancel, ...entry }) {
        asked += 1;
        const number = asked;
        const answer = first.ask({ ...entry, name, number });
        const detach = entry.waitMs > 0 && cancel?.onAbort(() => first.tell({ gone: number }));
        return detach ? answer.finally(detach) : answer;
      },
      undo: (undoneMs) => first.tell({ name, undoneMs }),
      leave: (tokens, overloaded) => first.tell({ name, tokens, overloaded }),
      pause: (pauseMs) => first.tell({ name, pauseMs }),
    }),
    limits: () => ({}),
  };
}

/** Answers the workers, if there are any. The requests of a dead worker have left. */
export function serveGates(subject: string, { clock }: Host): HostPart {
  const gates = createGates(clock);
  /** The names of the gates that the requests of each worker have entered, by its id. */
  const inside = new Map<number, string[]>();
  /** What the workers' clients wait for, by worker and number. */
  const waiting = new Map<string, Cancel>();

  async function answer(question: Question, worker: number): Promise<true | number> {
    const { name, number, ...entry } = question;
    const entered = inside.get(worker) ?? [];
    inside.set(worker, entered);
    const cancel = new Cancel();
    waiting.set(`${worker} ${number}`, cancel);
    const answered = await gates.of(name).enter({ ...entry, cancel });
    waiting.delete(`${worker} ${number}`);
    if (answered !== true) return answered;
    entered.push(name);
    if (!inside.has(worker)) gates.of(name).leave(0, false); // the worker has died meanwhile
    return true;
  }
  function hear(note: Note, worker: number): void {
    if ("gone" in note) {
      waiting.get(`${worker} ${note.gone}`)?.abort();
      return;
    }
    const gate = gates.of(note.name);
    if ("pauseMs" in note) {
      gate.pause(note.pauseMs);
      return;
    }
    if ("undoneMs" in note) gate.undo(note.undoneMs);
    else gate.leave(note.tokens, note.overloaded);
    const entered = inside.get(worker) ?? [];
    const at = entered.indexOf(note.name);
    if (at !== -1) entered.splice(at, 1);
  }
  function ended(worker: number): void {
    for (const name of inside.get(worker) ?? []) gates.of(name).leave(0, false);
    inside.delete(worker);
  }
  const close = answerWorkers<Question, Note, true | number>(subject, { answer, hear, ended });
  return { report: gates.limits, close };
}
