// Starts the workers, sends them their configuration, collects reports, and replaces dead workers.
import cluster, { type Worker } from "node:cluster";
import { on } from "node:events";
import { WORKER_MARK } from "../../../command-line/processes.ts";
import { valueAt } from "../../../config/setting.ts";
import type { Clock } from "../../../core/clock.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { Logs } from "../../../core/logs.ts";
import { VERSION } from "../../../core/version.ts";
import type { ConfigMessage, PrimaryMessage, WorkerMessage } from "./worker.ts";
import { readLines } from "./output.ts";
import { closeUnacknowledged } from "./unacknowledged.ts";

/** How long to wait before replacing a worker that never listened, in milliseconds. */
const RETRY_MS = 1_000;
/** The most that this wait grows to: it doubles as long as no worker in its place listens. */
const MAX_RETRY_MS = 60_000;

/** How long to wait for a worker's report, in milliseconds. A later report is ignored. */
const LATE_MS = 2_000;

/**
 * How long to wait before stopping a worker that received a stop signal, in milliseconds. If the
 * signal was sent to the whole group, this process has it by then and does not replace the worker.
 */
const SIGNAL_MS = 100;

/**
 * Whether a terminal sends this signal to its whole process group. It may end a worker that does
 * not yet handle signals, before the primary receives it. So the primary starts such a
 * worker again, and stops when all listen.
 */
const isForGroup = (signal: string | null): boolean =>
  signal !== null && ["SIGHUP", "SIGTERM", "SIGINT"].includes(signal);

/** A worker that has not ended this many milliseconds after drain_ms is killed. */
const LAST_WORK_MS = 8_000;

const longer = (pauseMs: number): number => Math.min(pauseMs * 2 || RETRY_MS, MAX_RETRY_MS);

export interface WorkerPoolOptions {
  /** The configuration at the start, with which every worker begins. */
  readonly atStart: ConfigMessage;
  /** Receives the lines of all workers, so that only one process writes to each log. */
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
   * Starts a worker. Resolves with the address on which it listens. Rejects if it cannot listen, or
   * exits before it does.
   */
  start(): Promise<string>;
  /** Sends a new configuration to all workers. */
  configure(configuration: ConfigMessage): void;
  /** The reports of the workers that listen and answer in time. */
  reports(): Promise<readonly Report[]>;
  /** Tells all workers to drain. Resolves when they have ended. */
  stop(): Promise<void>;
}

export function createWorkerPool(options: WorkerPoolOptions): WorkerPool {
  const { atStart, clock } = options;
  const { access, diagnostics, diagnose } = options.logs;
  const running = new Set<Worker>();
  const listening = new Set<Worker>();
  /** Workers that have their first configuration. Only these get later ones. */
  const greeted = new Set<Worker>();
  let inForce = atStart;
  let stopping = false;
  cluster.setupPrimary({ serialization: "advanced", silent: true });

  const isStopping = (): boolean => stopping || options.stopped.aborted;

  /** `pauseMs`: how long this start has waited. */
  function start(pauseMs = 0): Promise<string> {
    const worker = cluster.fork({ [WORKER_MARK]: VERSION });
    const { process: child } = worker;
    let hasSpoken = false; // from its first message on, the worker handles signals itself
    let why = "";
    running.add(worker);
    worker.setMaxListeners(0); // each pending report adds listeners
    closeUnacknowledged(child);
    // Both are absent if there were no file descriptors left to create the process.
    if (child.stdout) readLines(child.stdout, access.writeText);
    if (child.stderr) readLines(child.stderr, diagnostics.writeText);
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
        if (!hasSpoken && isForGroup(signal) && !isStopping()) return resolve(start(pauseMs));
        const detail = `it ended with ${signal ?? code}${why}`;
        reject(new Error(`a worker did not begin to listen: ${detail}`));
        if (!isStopping()) replace(worker.id, detail, hadListened ? 0 : longer(pauseMs));
      });
    });
  }

  function greet(worker: Worker): void {
    send(worker, { configuration: firstFor(atStart, inForce) });
    if (inForce !== atStart) send(worker, { configuration: inForce });
    greeted.add(worker);
    if (stopping) send(worker, { stop: true });
  }

  function replace(worker: number, end: string, pauseMs: number): void {
    const detail = `${end}, and is replaced`;
    diagnose({ event: "worker_died", level: "error", worker, detail });
    clock.after(pauseMs, () => {
      if (stopping) return;
      try {
        start(pauseMs).catch(() => undefined);
      } catch (error) {
        replace(worker, (error as Error).message, longer(pauseMs)); // no memory for another process
      }
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

const tlsIn = valueAt("server.tls");

/**
 * The configuration with which a worker begins. Settings that are read at start only must be the
 * same in all workers, so it is the one at the start of the gateway, but with the certificate in
 * force: a worker reads the certificate's files, and those of an earlier one may be deleted.
 */
function firstFor(atStart: ConfigMessage, inForce: ConfigMessage): ConfigMessage {
  const tls = tlsIn(inForce.config);
  if (tls === undefined || tlsIn(atStart.config) === undefined) return atStart;
  const { config } = atStart;
  const server = { ...config.server, tls };
  return { ...atStart, config: { ...config, server } };
}

/** Sends a message. Does nothing if the worker cannot be reached any more. */
function send(worker: Worker, message: PrimaryMessage): void {
  if (worker.isConnected()) worker.send(message);
}

/** Resolves when the process has ended and its output has been read. */
const closed = ({ process: child }: Worker): Promise<void> =>
  new Promise((resolve) => {
    child.once("close", () => resolve());
  });

/** The report of a worker. Undefined: it exits, or does not answer in time. */
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
    // The report is late, or the worker cannot be reached.
  }
  return undefined;
}
