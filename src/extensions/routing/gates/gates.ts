// Gates that all processes share. With workers, the primary keeps the gates, and the workers
// ask it. A single process keeps its own.
import cluster from "node:cluster";
import type { Clock } from "../../../core/clock.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { answerWorkers, callPrimary } from "../../scale/cluster/index.ts";
import type { Host, HostPart } from "../../scale/installation/index.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import {
  createGate,
  type Bounds,
  type Ending,
  type Entered,
  type Entry,
  type Permit,
} from "./gate.ts";

/** A gate, with the bounds that apply to a request. */
export interface Gate {
  /** The bounds that were given to Gates.of(). */
  readonly bounds: Bounds;
  /** Asks for a permit. Returns a promise if the request waits or another process decides. */
  enter(entry: Entry): Entered | Promise<Entered>;
  /** Admits no request for `ms` milliseconds, but at most for a minute. */
  pause(ms: number): void;
}

export interface Gates {
  /** The gate of this name. These bounds apply from the next enter() on. */
  of(name: string, bounds: Bounds): Gate;
  /** The present limits of concurrent requests, by the names of gates. Empty in a worker. */
  limits(): Readonly<Record<string, number>>;
}

/** The gates of this process alone. */
export function createGates(clock: Clock): Gates {
  const gates = new Map<string, ReturnType<typeof createGate>>();
  return {
    of(name, bounds) {
      const gate = gates.get(name) ?? createGate(clock);
      gates.set(name, gate);
      return { bounds, enter: (entry) => gate.enter(bounds, entry), pause: gate.pause };
    },
    limits: () =>
      Object.fromEntries(
        [...gates].flatMap(([name, gate]) =>
          gate.limit() < Infinity ? [[name, gate.limit()]] : [],
        ),
      ),
  };
}

/** What a worker asks the primary about the gate of this name. */
interface Question extends Omit<Entry, "cancel"> {
  readonly name: string;
  readonly bounds: Bounds;
  /** Identifies the question within its worker. */
  readonly number: number;
}

/**
 * A message from a worker to the primary. With `pauseMs`: pause the gate. With `tokens`: the
 * request of this question has ended. Otherwise: the request of this question is not made.
 */
type Note =
  | { readonly name: string; readonly pauseMs: number }
  | { readonly number: number; readonly tokens: number; readonly ending: Ending }
  | { readonly number: number };

/** The gates for use in any process. `subject` keeps the gates of different extensions apart. */
export function gatesFor(
  { clock, on }: Pick<GatewayContext, "clock" | "on">,
  subject: string,
): Gates {
  if (!cluster.isWorker) return createGates(clock);
  const primary = callPrimary<Question, Note, true | number>(subject);
  on("close", primary.close);
  let asked = 0;
  return {
    of: (name, bounds) => ({
      bounds,
      async enter({ cancel, ...entry }) {
        asked += 1;
        const number = asked;
        const undo = () => primary.notify({ number });
        const detach = cancel?.onAbort(undo);
        const entered = await primary.ask({ ...entry, name, bounds, number });
        detach?.();
        if (entered !== true) return entered;
        return {
          release: (tokens, ending) => primary.notify({ number, tokens, ending }),
          undo,
        };
      },
      pause: (pauseMs) => primary.notify({ name, pauseMs }),
    }),
    limits: () => ({}),
  };
}

/** Serves the gates to the workers, if there are any. A worker's exit releases its permits. */
export function serveGates(subject: string, { clock }: Host): HostPart {
  const gates = createGates(clock);
  /** Cancels waiting requests. Keyed by the worker and the number of the question, as `permits`. */
  const waiting = new Map<string, Cancel>();
  const permits = new Map<string, Permit>();

  async function answer(question: Question, worker: number): Promise<true | number> {
    const { name, bounds, number, ...entry } = question;
    const key = `${worker} ${number}`;
    const cancel = new Cancel();
    waiting.set(key, cancel);
    const entered = await gates.of(name, bounds).enter({ ...entry, cancel });
    waiting.delete(key);
    if (typeof entered === "number") return entered;
    permits.set(key, entered);
    return true;
  }
  function onNote(note: Note, worker: number): void {
    if ("pauseMs" in note) {
      gates.of(note.name, {}).pause(note.pauseMs);
      return;
    }
    const key = `${worker} ${note.number}`;
    const permit = permits.get(key);
    permits.delete(key);
    waiting.get(key)?.abort();
    if ("tokens" in note) permit?.release(note.tokens, note.ending);
    else permit?.undo();
  }
  function onExit(worker: number): void {
    const isOwn = (key: string): boolean => key.startsWith(`${worker} `);
    for (const [key, cancel] of waiting) if (isOwn(key)) cancel.abort();
    for (const [key, permit] of permits)
      if (isOwn(key)) {
        permits.delete(key);
        permit.release(0, "other");
      }
  }
  const close = answerWorkers<Question, Note, true | number>(subject, { answer, onNote, onExit });
  return { report: gates.limits, close };
}
