// The workers of one installation: started, greeted with what is in force, and replaced when they
// die.
import cluster from "node:cluster";
import type { Clock } from "../../../core/clock.ts";
import type { Report } from "../../../core/extension/report.ts";
import type { Logs } from "../../../core/logs.ts";
import { startChild, type Child, type ChildEnd } from "./child.ts";
import type { ConfigMessage } from "./messages.ts";

/**
 * How long to wait before a worker is started again that could not even begin to listen. In
 * milliseconds.
 */
const RETRY_MS = 1_000;

export interface WorkerPoolOptions {
  /** The configuration at the start, with which every worker begins. */
  readonly atStart: ConfigMessage;
  /** Gets the lines of all workers, so that only one process writes to each log. */
  readonly logs: Logs;
  /** Times the wait before a worker is started again. */
  readonly clock: Clock;
  /**
   * Whether the process has received a signal to stop, which a terminal sends to its child
   * processes too.
   */
  stopRequested(): boolean;
}

export interface WorkerPool {
  /**
   * Starts a worker. Resolves with the address that it listens on; rejects if it cannot, or ends
   * before.
   */
  start(): Promise<string>;
  /** Gives all workers another configuration. */
  configure(configuration: ConfigMessage): void;
  /** The reports of the workers that are at hand. */
  reports(): Promise<readonly Report[]>;
  /** Tells all workers to drain. Resolves when they have ended. */
  stop(): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { atStart, clock } = options;
  const { access, diagnostics, diagnose } = options.logs;
  const running = new Set<Child>();
  let inForce = atStart;
  let stopping = false;
  cluster.setupPrimary({ serialization: "advanced", silent: true });

  function start(): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = startChild({
        born: greet,
        listening: resolve,
        failed: (message) => reject(new Error(message)),
        accessLine: access.writeText,
        diagnosticsLine: diagnostics.writeText,
        unreachable(worker, detail) {
          if (!stopping) diagnose({ event: "worker_unreachable", level: "error", worker, detail });
        },
        ended(end) {
          running.delete(child);
          const isStopping = stopping || options.stopRequested();
          // This process has had a signal to the group too, but may hear of it only later; it then
          // stops when all listen.
          if (end.wasUnborn && !isStopping) {
            resolve(start());
            return;
          }
          reject(new Error(`a worker did not begin to listen: ${end.detail}`));
          if (!isStopping) replace(child.id, end);
        },
      });
      running.add(child);
    });
  }

  function greet(child: Child): void {
    // Settings that are read at start only must be the same for all, so each begins with the first
    // configuration.
    child.send({ configuration: atStart });
    if (inForce !== atStart) child.send({ configuration: inForce });
    if (stopping) child.send({ stop: true });
  }

  function replace(worker: number, { detail, hadListened }: ChildEnd): void {
    const fate = `${detail}, and is replaced`;
    diagnose({ event: "worker_died", level: "error", worker, detail: fate });
    clock.after(hadListened ? 0 : RETRY_MS, () => {
      if (!stopping) start().catch(() => undefined);
    });
  }

  return {
    start,
    configure(configuration) {
      inForce = configuration;
      for (const child of running) child.send({ configuration });
    },
    async reports() {
      const all = await Promise.all([...running].map((child) => child.report()));
      return all.filter((report) => report !== undefined);
    },
    async stop() {
      stopping = true;
      for (const child of running) child.send({ stop: true });
      await Promise.all([...running].map(({ closed }) => closed));
    },
  };
}
