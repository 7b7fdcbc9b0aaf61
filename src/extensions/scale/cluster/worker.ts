// A worker: a gateway that asks the first process to admit its requests. It has its own spend log
// segment, connections and breakers. The messages between the two are defined here.
import cluster, { type Worker } from "node:cluster";
import type { Config } from "../../../core/config.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { WorkerProgram } from "../../../command-line/processes.ts";
import type { Gateway } from "../../../core/app.ts";
import { createRemoteLimiter } from "./limiter.ts";

/**
 * From a worker. Everything may be absent. Messages hold Maps, so they travel by structured clone.
 */
export interface WorkerMessage {
  /** It runs, and waits for its configuration. */
  readonly born?: true;
  /** The address that it listens on. */
  readonly listening?: string;
  /** Why it cannot listen. */
  readonly failed?: string;
  /** The answer to FirstProcessMessage.report. */
  readonly report?: Report;
  /** The worker received a stop signal. It stops when the first process says so. */
  readonly signalled?: true;
}

/** A configuration, and the names of the extensions that it needs: code does not travel. */
export interface ConfigMessage {
  /** Checked, with every default and with its secrets. */
  readonly config: Config;
  /** In the order of src/extensions.ts. */
  readonly extensions: readonly string[];
}

/** From the first process. Everything may be absent. */
export interface FirstProcessMessage {
  /** The configuration in force from now on; the first one makes the worker begin. */
  readonly configuration?: ConfigMessage;
  /** The worker is to report. */
  readonly report?: true;
  /** The worker is to drain and end. */
  readonly stop?: true;
}

/**
 * Runs a worker. Returns the function to call on a stop signal. A terminal and systemd send the
 * signal to the whole group, so the worker asks the first process: if it ended by itself before
 * the first process received the signal, it would be replaced.
 */
export function runWorker(program: WorkerProgram): () => void {
  const { worker } = cluster as { worker: Worker };
  const send = (message: WorkerMessage): void => {
    if (worker.isConnected()) worker.send(message);
  };
  const limiter = createRemoteLimiter();
  /** From the first configuration on. Resolves when the latest one is in force. */
  let serving: Promise<Gateway | undefined> | undefined;
  let isEnding = false;
  let stopRequested = false;

  async function begin({ config, extensions }: ConfigMessage): Promise<Gateway | undefined> {
    try {
      const gateway = await program.create(config, extensions, limiter);
      send({ listening: await gateway.listen() });
      return gateway;
    } catch (error) {
      worker.send({ failed: (error as Error).message }, () => program.end());
      return undefined;
    }
  }

  function configure(configuration: ConfigMessage): void {
    const { config, extensions } = configuration;
    const before = serving;
    // One after the other: a reload may have to load extensions, and the latest must count.
    serving = before
      ? before.then(async (gateway) => {
          if (gateway) await program.reload(gateway, config, extensions);
          return gateway;
        })
      : begin(configuration);
    // It may have been asked to stop before there was anything to stop.
    if (stopRequested) stop();
  }

  function stop(): void {
    stopRequested = true;
    if (isEnding || !serving) return;
    isEnding = true;
    serving.then((gateway) => gateway && program.end(gateway));
  }

  worker.on("message", ({ configuration, report, stop: toStop }: FirstProcessMessage) => {
    if (configuration) configure(configuration);
    if (report) serving?.then((gateway) => gateway && send({ report: gateway.report() }));
    if (toStop) stop();
  });
  worker.send({ born: true });
  return () => {
    if (worker.isConnected()) send({ signalled: true });
    else stop();
  };
}
