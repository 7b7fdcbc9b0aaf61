// Many cores: `server.workers` processes that serve one port (node:cluster), and the first process, which serves none of it: it starts
// them, replaces those that die, has the windows and the places of all, the admin listener and the logs. A worker has its own spend log segment,
// connections and breakers; it asks for each request's admission, what is asked in one turn of the event loop in one message.
import cluster, { type Worker } from "node:cluster";
import type { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { createKeyring, createKeyStore } from "../../core/accounts/keys.ts";
import {
  createLimiter,
  decide,
  type AdmissionRequest,
  type AdmissionDecision,
  type Limiter,
} from "../../core/accounts/limiter.ts";
import { createAdmin, type Report } from "../admin/admin.ts";
import { reload } from "../../core/config/load.ts";
import type { Config } from "../../core/config/schema.ts";
import { checkFit, type Gateway, type GatewayDeps } from "../../core/app.ts";
import { dropEvents } from "../../core/http/dropped-lines.ts";
import { createLineLog } from "../../core/http/line-log.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import { createMetrics, merge } from "../metrics/metrics.ts";

const RETRY_MS = 1_000; // before a worker that could not even begin to listen is tried again
const LATE_MS = 2_000; // a worker that has not said how it is by then stands still, and is left out

/** What a terminal sends to all processes that were started from it. */
const GROUP_SIGNALS = ["SIGHUP", "SIGTERM", "SIGINT"];

/** What a worker says: that it was born, where it listens or why it cannot, how it is, who asks for admission, whose place is free again. */
interface WorkerMessage {
  readonly born?: true;
  readonly listening?: string;
  readonly failed?: string;
  readonly report?: Report;
  readonly asks?: readonly AdmissionRequest[];
  readonly released?: AdmissionRequest;
}
/** What it is told: the answers to its asks, in their order; what is in force from now on; what to do. */
interface PrimaryMessage {
  readonly decisions?: readonly AdmissionDecision[];
  readonly config?: Config;
  readonly report?: true;
  readonly stop?: true;
}
const tell = (worker: Worker, what: WorkerMessage | PrimaryMessage) => {
  if (worker.isConnected()) worker.send(what);
};

/** `stopRequested`: whether the process has received a signal to stop, which a terminal sends to the workers too. */
type SupervisorDeps = Required<Pick<GatewayDeps, "accessLog" | "diagnostics">> & {
  readonly stopRequested: () => boolean;
};
/** A gateway of several processes, to be used as one: what the first process is. */
export function createSupervisor(
  initial: Config,
  { stopRequested, ...sinks }: SupervisorDeps,
): Omit<Gateway, "close" | "report"> {
  const metrics = createMetrics();
  const diagnose: Diagnose = (event) =>
    diagnostics.write({ time: new Date().toISOString(), ...event });
  const access = createLineLog(
    sinks.accessLog,
    dropEvents("access", metrics.lineDropped, diagnose),
  );
  const diagnostics = createLineLog(
    sinks.diagnostics,
    dropEvents("diagnostics", metrics.lineDropped, diagnose),
  );
  const limiter = createLimiter();
  const running = new Set<Worker>();
  let config = initial;
  let stopping = false;
  // A keys.json that cannot be read any more is told by the workers, which authenticate by it.
  const keys = createKeyStore(
    initial.data_dir,
    () => undefined,
    () => undefined,
  );
  const tellAll = (order: PrimaryMessage) =>
    running.forEach((worker) => {
      tell(worker, order);
    });
  cluster.setupPrimary({ serialization: "advanced", silent: true }); // what is said holds maps; of several writers lines would be torn

  /** Resolves with the address that it listens on; rejects if it cannot, or ends before. */
  function start(): Promise<string> {
    const worker = cluster.fork();
    const placed: AdmissionRequest[] = []; // whose places it holds
    let address: string | undefined;
    let hasBegun = false; // by then it listens for signals itself
    running.add(worker);
    return new Promise((resolve, reject) => {
      worker.on(
        "message",
        ({ born, listening, failed, report, asks = [], released }: WorkerMessage) => {
          if (!running.has(worker)) return; // its places are given back
          hasBegun = true;
          if (born) tell(worker, { config: initial }); // what is read at start only must be the same for all
          if (born && config !== initial) tell(worker, { config });
          if (born && stopping) tell(worker, { stop: true });
          if (failed !== undefined) reject(new Error(failed));
          address ??= listening;
          if (address !== undefined) resolve(address);
          if (born || report) worker.emit("report", report); // who asked before its birth was not heard
          if (released) {
            limiter.release(released);
            placed.splice(
              placed.findIndex(({ account }) => account === released.account),
              1,
            );
          }
          const decisions = asks.map((ask) => limiter.admit(ask));
          placed.push(
            ...asks.filter(
              ({ maxInFlight }, at) => maxInFlight !== null && decisions[at]!.admitted,
            ),
          );
          if (decisions.length > 0) tell(worker, { decisions });
        },
      );
      worker.on(
        "error",
        ({ message }) =>
          stopping ||
          diagnose({
            event: "worker_unreachable",
            level: "error",
            worker: worker.id,
            detail: message,
          }),
      );
      const { process: child } = worker;
      createInterface({ input: child.stdout! }).on("line", access.writeText);
      createInterface({ input: child.stderr! }).on("line", diagnostics.writeText);
      child.on("close", (code, signal) => {
        const detail = `it ended with ${signal ?? code}`;
        running.delete(worker);
        worker.emit("report");
        placed.forEach(limiter.release);
        // Until Node runs the program, a signal to the whole process group ends the worker: no fault of its own. This process has had the
        // signal too, but may hear of it only after this, and then stops when all listen.
        const endedUnborn = !hasBegun && GROUP_SIGNALS.some((each) => each === signal);
        if (endedUnborn && !stopping && !stopRequested()) return resolve(start());
        reject(new Error(`a worker did not begin to listen: ${detail}`));
        if (stopping || stopRequested()) return;
        diagnose({
          event: "worker_died",
          level: "error",
          worker: worker.id,
          detail: `${detail}, and is replaced`,
        });
        setTimeout(
          () => stopping || start().catch(() => undefined),
          address === undefined ? RETRY_MS : 0,
        );
      });
    });
  }

  /** Of those that are at hand; one that ends meanwhile has none. */
  const reports = async () =>
    (
      await Promise.all(
        [...running].map(async (worker) => {
          tell(worker, { report: true });
          const late = setTimeout(() => worker.emit("report"), LATE_MS);
          return await new Promise<Report | undefined>((resolve) =>
            (worker as EventEmitter).once("report", resolve),
          ).finally(() => clearTimeout(late));
        }),
      )
    ).filter((report) => report !== undefined);
  /** What this process has counted itself stands with what the first worker has. */
  const allReports = async (): Promise<readonly Report[]> => {
    const [first, ...others] = await reports();
    if (!first) return [];
    return [{ ...first, samples: merge([first.samples, metrics.samples]) }, ...others];
  };
  const accounts = () => createKeyring(config, keys.current(), Date.now).accounts();
  const admin = createAdmin(initial, {
    current: () => config,
    reports: allReports,
    accounts,
    used: limiter.used,
    diagnose,
  });

  async function drain(): Promise<void> {
    stopping = true;
    tellAll({ stop: true });
    await Promise.all(
      [...running].map(
        ({ process: child }) => new Promise((resolve) => child.once("close", resolve)),
      ),
    ); // whatever else it says
    await admin.close();
    keys.close();
    access.flush();
    diagnostics.flush();
  }

  return {
    async listen(): Promise<string> {
      try {
        const address = await start(); // if this one cannot, none can
        await Promise.all([
          ...Array.from({ length: initial.server.workers - 1 }, start),
          admin.listen(address),
        ]);
        return address;
      } catch (error) {
        await drain();
        throw error;
      }
    },
    adminAddress: admin.address,
    diagnose,
    drain,
    reload(changed: Config): void {
      checkFit(changed, initial);
      config = changed;
      tellAll({ config });
    },
  };
}

/** In a worker: a gateway as the first process wants it. `make` makes one of a configuration and the limits of all; `end` ends it and the
 * process, or if there is none, because it could not listen, the process alone. Returns what stops it, as soon as it serves. */
export function serveAsWorker(
  make: (config: Config, limits: Limiter) => Gateway,
  end: (gateway?: Gateway) => void,
): () => void {
  const { worker } = cluster as { worker: Worker };
  const waiting: ((decision: AdmissionDecision) => void)[] = [];
  const asks: AdmissionRequest[] = []; // of this turn of the event loop
  let serving: Promise<Gateway | undefined> | undefined; // from the first configuration on
  let isEnding = false;
  let stopRequested = false;
  const askOf = ({ account, limits, maxInFlight }: AdmissionRequest): AdmissionRequest => ({
    account,
    limits,
    maxInFlight,
  });
  const limits: Limiter = {
    admit(ask) {
      if (ask.maxInFlight === null && ask.limits.every(({ rpm }) => rpm === null))
        return decide(true, []);
      if (asks.length === 0)
        setImmediate(() => asks.length > 0 && tell(worker, { asks: asks.splice(0) }));
      asks.push(askOf(ask));
      return new Promise((resolve) => waiting.push(resolve));
    },
    /** At once: it must be heard before the end of the answer is. */
    release: (ask) => {
      if (ask.maxInFlight !== null) tell(worker, { asks: asks.splice(0), released: askOf(ask) });
    },
    used: () => 0, // the first process tells
  };

  async function begin(config: Config): Promise<Gateway | undefined> {
    try {
      const gateway = make(config, limits);
      worker.send({ listening: await gateway.listen() });
      return gateway;
    } catch (error) {
      worker.send({ failed: (error as Error).message }, () => end());
      return undefined;
    }
  }
  function stop(): void {
    stopRequested = true;
    if (isEnding || !serving) return;
    isEnding = true;
    serving.then((gateway) => gateway && end(gateway));
  }
  worker.on("message", ({ decisions = [], config, report, stop: toStop }: PrimaryMessage) => {
    for (const decision of decisions) waiting.shift()?.(decision);
    if (config && serving) serving.then((gateway) => gateway && reload(gateway, () => config));
    else if (config) serving = begin(config);
    if (config && stopRequested) stop(); // it was asked to before there was anything to stop
    if (report) serving?.then((gateway) => gateway && worker.send({ report: gateway.report() }));
    if (toStop) stop();
  });
  worker.send({ born: true });
  return stop;
}
