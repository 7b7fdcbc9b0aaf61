// The first process of several: it serves none of the public port itself. It starts the workers, replaces those that die, and has the
// windows and slots of all, the parts that exist once (the admin listener), and the logs: several writers on one pipe would interleave
// their lines.
import cluster from "node:cluster";
import { createKeyring, NO_CREATED_KEYS } from "../../core/accounts/keyring.ts";
import { createLimiter } from "../../core/accounts/limiter.ts";
import { assertFits } from "../../core/app.ts";
import { systemClock } from "../../core/clock.ts";
import type { Config } from "../../core/config/schema.ts";
import type {
  Extension,
  RunningGateway,
  SuperviseOptions,
} from "../../core/extension/extension.ts";
import type { Report } from "../../core/extension/report.ts";
import { secureListener, startHost, startObservations } from "../../core/extension/parts.ts";
import { createLogs } from "../../core/logs.ts";
import { startChild, type Child, type ChildEnd } from "./child.ts";
import type { ConfigMessage } from "./messages.ts";

/** How long to wait before a worker is started again that could not even begin to listen. In milliseconds. */
const RETRY_MS = 1_000;

/** `workers`: how many processes serve. */
export function createSupervisor(
  initial: Config,
  workers: number,
  options: SuperviseOptions,
): RunningGateway {
  const { extensions, stopRequested } = options;
  const clock = systemClock;
  const observations = startObservations(extensions);
  const logs = createLogs(options, clock, observations.observer);
  const { access, diagnostics, diagnose } = logs;
  const limiter = createLimiter(clock.monotonic);
  const running = new Set<Child>();
  const atStart: ConfigMessage = messageOf(initial, extensions);
  let inForce = atStart;
  let stopping = false;
  // A keys.json that cannot be read any more is reported by the workers, which authenticate by it.
  const keySources = extensions.flatMap(({ openKeys }) =>
    openKeys
      ? [
          openKeys({
            dataDir: initial.data_dir,
            changed: () => undefined,
            diagnose: () => undefined,
          }),
        ]
      : [],
  );
  cluster.setupPrimary({ serialization: "advanced", silent: true });

  /** Resolves with the address that the worker listens on; rejects if it cannot, or ends before. */
  function start(): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = startChild(limiter, {
        born: greet,
        listening: resolve,
        failed: (message) => reject(new Error(message)),
        accessLine: access.writeText,
        diagnosticsLine: diagnostics.writeText,
        unreachable(id, detail) {
          if (!stopping)
            diagnose({ event: "worker_unreachable", level: "error", worker: id, detail });
        },
        ended(end) {
          running.delete(child);
          const isStopping = stopping || stopRequested();
          // This process has had a signal to the group too, but may hear of it only later; it then stops when all listen.
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
    // What is read at start only must be the same for all, so each begins with the first configuration.
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

  /** Of the workers that are at hand. */
  async function reports(): Promise<readonly Report[]> {
    const all = await Promise.all([...running].map((child) => child.report()));
    return all.filter((report) => report !== undefined);
  }

  const host = startHost({
    config: initial,
    current: () => inForce.config,
    extensions,
    clock,
    diagnose,
    reports,
    observed: observations.report,
    accounts: () => {
      const created = keySources[0]?.current() ?? NO_CREATED_KEYS;
      return createKeyring(inForce.config, created, clock.now).accounts();
    },
    used: limiter.used,
  });

  async function drain(): Promise<void> {
    stopping = true;
    for (const child of running) child.send({ stop: true });
    await Promise.all([...running].map(({ closed }) => closed));
    await host?.close();
    for (const source of keySources) source.close();
    logs.flush();
  }

  return {
    async listen() {
      try {
        const address = await start(); // if this one cannot, none can
        const others = Array.from({ length: workers - 1 }, start);
        await Promise.all([...others, host?.listen(address)]);
        return address;
      } catch (error) {
        await drain();
        throw error;
      }
    },
    announcements: () => host?.announcements() ?? [],
    diagnose,
    drain,
    reload(config, loaded) {
      assertFits(config, initial);
      secureListener(config, "server", loaded); // throws if the certificate cannot be used
      inForce = messageOf(config, loaded);
      for (const child of running) child.send({ configuration: inForce });
    },
  };
}

const messageOf = (config: Config, extensions: readonly Extension[]): ConfigMessage => ({
  config,
  extensions: extensions.map(({ name }) => name),
});
