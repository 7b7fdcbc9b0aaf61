// A worker: a gateway that asks the primary to admit its requests. It has its own spend log
// segment, connections and breakers. The messages between the two are defined here.
import cluster, { type Worker } from "node:cluster";
import type { Config } from "../../../core/config.ts";
import type { Report } from "../../../core/extension/places.ts";
import type { WorkerProgram } from "../../../command-line/processes.ts";
import type { Gateway } from "../../../core/app.ts";
import { createRemoteLimiter } from "./limiter.ts";

/**
 * A message from a worker. Each member may be absent. Messages contain Maps, so they are sent by
 * structured clone.
 */
export interface WorkerMessage {
  /** The worker runs, and waits for its configuration. */
  readonly born?: true;
  /** The address on which the worker listens. */
  readonly listening?: string;
  /** Why the worker cannot listen. */
  readonly failed?: string;
  /** The answer to PrimaryMessage.report. */
  readonly report?: Report;
  /** The worker received a stop signal. It stops when the primary says so. */
  readonly signalled?: true;
}

/** A configuration, and the names of the extensions that it needs: code cannot be sent. */
export interface ConfigMessage {
  /** The checked configuration, with all defaults and secrets. */
  readonly config: Config;
  /** The names, in the order of src/extensions.ts. */
  readonly extensions: readonly string[];
}

/** A message from the primary. Each member may be absent. */
export interface PrimaryMessage {
  /** The configuration in force from now on. The first one makes the worker serve. */
  readonly configuration?: ConfigMessage;
  /** The worker must send a report. */
  readonly report?: true;
  /** The worker must drain and exit. */
  readonly stop?: true;
}

/**
 * Runs a worker. Returns the function to call on a stop signal. A terminal and systemd send the
 * signal to the whole group, so the worker tells the primary and waits: if it exited before
 * the primary received the signal, it would be replaced.
 */
export function runWorker(program: WorkerProgram): () => void {
  const { worker } = cluster as { worker: Worker };
  const send = (message: WorkerMessage): void => {
    if (worker.isConnected()) worker.send(message);
  };
  const limiter = createRemoteLimiter();
  /** Resolves when the latest configuration is in force. Undefined: none has arrived yet. */
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
    // Reload one after the other: a reload may load extensions, and the latest one must win.
    serving = before
      ? before.then(async (gateway) => {
          if (gateway) await program.reload(gateway, config, extensions);
          return gateway;
        })
      : begin(configuration);
    // A request to stop may have arrived before there was a gateway to stop.
    if (stopRequested) stop();
  }

  function stop(): void {
    stopRequested = true;
    if (isEnding || !serving) return;
    isEnding = true;
    serving.then((gateway) => gateway && program.end(gateway));
  }

  worker.on("message", ({ configuration, report, stop: toStop }: PrimaryMessage) => {
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
