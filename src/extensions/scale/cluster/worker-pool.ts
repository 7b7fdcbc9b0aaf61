// The workers of one installation: started, greeted with what is in force, asked for reports, and
// replaced when they die.
import cluster, { type Worker } from "node:cluster";
import { on } from "node:events";
import type { Clock } from "../../../core/clock.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Logs } from "../../../core/logs.ts";
import type { ConfigMessage, PrimaryMessage, WorkerMessage } from "./worker.ts";
import { readLines } from "./output.ts";
import { closeUntaken } from "./untaken.ts";

/**
 * How long to wait before a worker is started again that could not even begin to listen. In
 * milliseconds.
 */
const RETRY_MS = 1_000;

/** A worker that has not reported by then stands still, and is left out. In milliseconds. */
const LATE_MS = 2_000;

/**
 * A worker that a signal asked to stop is told to after this time, in milliseconds. By then a
 * signal to all processes of the group has been heard here too, and the worker's end is no fault.
 */
const SIGNAL_MS = 100;

/**
 * Whether it is one of the signals that a terminal sends to all processes that were started from
 * it. One that ends a worker before Node runs the program is no fault of the worker. The first
 * process has it too, but may hear of it only later; it then stops when all listen.
 */
const isForGroup = (signal: string | null): boolean =>
  signal !== null && ["SIGHUP", "SIGTERM", "SIGINT"].includes(signal);

/** What a worker does after drain_ms takes less. One that hangs must not hold up the others. */
const LAST_WORK_MS = 8_000;

export interface WorkerPoolOptions {
  /** The configuration at the start, with which every worker begins. */
  readonly atStart: ConfigMessage;
  /** Gets the lines of all workers, so that only one process writes to each log. */
  readonly logs: Logs;
  /** Times the wait before a worker is started again. */
  readonly clock: Clock;
  /**
   * Aborted when the process has received a signal to stop, which a terminal sends to its child
   * processes too.
   */
  readonly stopped: AbortSignal;
}

export interface WorkerPool {
  /**
   * Starts a worker. Resolves with the address that it listens on; rejects if it cannot, or ends
   * before.
   */
  start(): Promise<string>;
  /** Gives all workers another configuration. */
  configure(configuration: ConfigMessage): void;
  /** The reports of the workers that listen, but of none that does not answer in time. */
  reports(): Promise<readonly Report[]>;
  /** Tells all workers to drain. Resolves when they have ended. */
  stop(): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { atStart, clock } = options;
  const { access, diagnostics, diagnose } = options.logs;
  const running = new Set<Worker>();
  const listening = new Set<Worker>();
  /** Those that have their first configuration. A worker would take any before it for that one. */
  const greeted = new Set<Worker>();
  let inForce = atStart;
  let stopping = false;
  cluster.setupPrimary({ serialization: "advanced", silent: true });

  const isStopping = (): boolean => stopping || options.stopped.aborted;

  function start(): Promise<string> {
    const worker = cluster.fork();
    const { process: child } = worker;
    let hasSpoken = false; // by then it listens for signals itself
    let why = "";
    running.add(worker);
    worker.setMaxListeners(0); // each question for a report has some
    closeUntaken(child);
    readLines(child.stdout!, access.writeText);
    readLines(child.stderr!, diagnostics.writeText);
    worker.on("error", ({ message: detail }) => {
      if (stopping) return;
      diagnose({ event: "worker_unreachable", level: "error", worker: worker.id, detail });
    });
    worker.on("message", ({ signalled }: WorkerMessage) => {
      if (signalled) clock.after(SIGNAL_MS, () => send(worker, { stop: true }));
    });
    return new Promise((resolve, reject) => {
      worker.on("message", ({ born, failed, listening: address }: WorkerMessage) => {
        hasSpoken = true;
        if (born) greet(worker);
        if (failed !== undefined) {
          why = `: ${failed}`;
          reject(new Error(failed));
        }
        if (address === undefined) return;
        listening.add(worker);
        resolve(address);
      });
      child.on("close", (code, signal) => {
        running.delete(worker);
        greeted.delete(worker);
        const hadListened = listening.delete(worker);
        if (!hasSpoken && isForGroup(signal) && !isStopping()) {
          resolve(start());
          return;
        }
        const detail = `it ended with ${signal ?? code}${why}`;
        reject(new Error(`a worker did not begin to listen: ${detail}`));
        if (!isStopping()) replace(worker.id, detail, hadListened ? 0 : RETRY_MS);
      });
    });
  }

  function greet(worker: Worker): void {
    // Settings that are read at start only must be the same for all, so each begins with the first
    // configuration.
    send(worker, { configuration: atStart });
    if (inForce !== atStart) send(worker, { configuration: inForce });
    greeted.add(worker);
    if (stopping) send(worker, { stop: true });
  }

  function replace(worker: number, end: string, pauseMs: number): void {
    const detail = `${end}, and is replaced`;
    diagnose({ event: "worker_died", level: "error", worker, detail });
    clock.after(pauseMs, () => {
      if (!stopping) start().catch(() => undefined);
    });
  }

  return {
    start,
    configure(configuration) {
      inForce = configuration;
      for (const worker of greeted) send(worker, { configuration });
    },
    async reports() {
      const all = await Promise.all([...listening].map(reportOf));
      return all.filter((report) => report !== undefined);
    },
    async stop() {
      stopping = true;
      for (const worker of running) send(worker, { stop: true });
      const { drain_ms } = inForce.config.server;
      const late = clock.after(drain_ms + LAST_WORK_MS, () => {
        for (const { process: child } of running) child.kill("SIGKILL");
      });
      await Promise.all([...running].map(closed));
      late.cancel();
    },
  };
}

/** Does nothing if the worker cannot be reached any more. */
function send(worker: Worker, message: PrimaryMessage): void {
  if (worker.isConnected()) worker.send(message);
}

/** Resolves when the process has ended and its output has been read. */
const closed = ({ process: child }: Worker): Promise<void> =>
  new Promise((resolve) => {
    child.once("close", () => resolve());
  });

/** Undefined: it ends, or does not answer in time. */
async function reportOf(worker: Worker): Promise<Report | undefined> {
  const until = { signal: AbortSignal.timeout(LATE_MS), close: ["exit"] };
  const messages = on(worker, "message", until);
  send(worker, { report: true });
  try {
    for await (const [message] of messages) {
      const { report } = message as WorkerMessage;
      if (report) return report;
    }
  } catch {
    // It is late, or cannot be reached.
  }
  return undefined;
}
