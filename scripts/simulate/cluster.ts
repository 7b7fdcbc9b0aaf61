// A simulated node:cluster: a primary process that starts workers, and messages between them. A
// message is cloned, arrives with a delay, and never overtakes another.

import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { SimProcess, Simulator } from "./simulator.ts";

/** The members of node:cluster that the program uses, without those that only the primary calls. */
export interface Cluster extends EventEmitter {
  readonly isPrimary: boolean;
  readonly isWorker: boolean;
  /** In the primary: its live workers, by their ids. */
  readonly workers?: Readonly<Record<number, EventEmitter>>;
  /** In a worker: itself. */
  readonly worker?: EventEmitter;
}

/** Called with what a process writes. */
export type Output = (text: string, from: "stdout" | "stderr") => void;

/** Starts a worker, to which `cluster` is its node:cluster. */
export type StartWorker = (cluster: Cluster, name: string, onOutput: Output) => SimProcess;

/** One direction of the channel between two processes. */
function createChannel(sim: Simulator, to: SimProcess, receive: (message: unknown) => void) {
  let arrival = 0;
  return (message: unknown, sent?: () => void): boolean => {
    const copy = structuredClone(message);
    arrival = Math.max(arrival, sim.time() + 0.02 + 0.3 * sim.random.random());
    sim.at(arrival, to, "a message", () => receive(copy));
    sent?.();
    return true;
  };
}

/** The cluster of a primary process. Its workers end with it, because their channel closes. */
export function createCluster(sim: Simulator, owner: SimProcess, start: StartWorker): Cluster {
  let last = 0;
  const workers: Record<number, EventEmitter> = {};
  const cluster: Cluster = Object.assign(new EventEmitter(), {
    isPrimary: true,
    isWorker: false,
    workers,
    setupPrimary: () => undefined,
    fork(): EventEmitter {
      last += 1;
      const worker = startWorker(last);
      workers[last] = worker;
      cluster.emit("fork", worker);
      return worker;
    },
  });

  function startWorker(id: number): EventEmitter {
    const inside = new EventEmitter();
    const child = Object.assign(new EventEmitter(), {
      stdout: new PassThrough(),
      stderr: new PassThrough(),
    });
    const outside = Object.assign(new EventEmitter(), { id, process: child });
    const ownCluster = Object.assign(new EventEmitter(), {
      isPrimary: false,
      isWorker: true,
      worker: inside,
    });
    const started = start(ownCluster, `${owner.name}, worker ${id}`, (text, from) => {
      sim.after(0.1, owner, "a worker's output", () => child[from].write(text));
    });
    const isConnected = (): boolean => started.alive && owner.alive;
    const toPrimary = createChannel(sim, owner, (message) => {
      outside.emit("message", message);
      cluster.emit("message", outside, message);
    });
    const toWorker = createChannel(sim, started, (message) => inside.emit("message", message));
    const send = (message: unknown, sent?: () => void) => isConnected() && toPrimary(message, sent);
    Object.assign(inside, { id, send, isConnected });
    Object.assign(child, { kill: (signal: string): void => sim.end(started, signal) });
    Object.assign(outside, { send: toWorker, isConnected });
    const endWithPrimary = (): void => sim.end(started, "its primary has ended");
    owner.atEnd.add(endWithPrimary);
    started.atEnd.add(() => {
      owner.atEnd.delete(endWithPrimary);
      delete workers[id];
      sim.after(1, owner, `worker ${id} has ended`, () => {
        child.stdout.end();
        child.stderr.end();
        outside.emit("exit", null, "SIGKILL");
        child.emit("close", null, "SIGKILL");
      });
    });
    return outside;
  }

  return cluster;
}
