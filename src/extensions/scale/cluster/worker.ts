// A worker: a gateway that asks the first process for the admission of its requests. It has a spend
// log segment, connections and breakers of its own.
import cluster, { type Worker } from "node:cluster";
import type { WorkerProgram } from "../../../command-line/processes.ts";
import type { Gateway } from "../../../core/app.ts";
import { createRemoteLimiter } from "./limiter.ts";
import type { ConfigMessage, PrimaryMessage, WorkerMessage } from "./messages.ts";

/**
 * Returns what a signal to stop calls. A terminal and systemd send one to all processes of a group:
 * a worker that ended before the first process has heard of it would be replaced.
 */
export function runWorker(program: WorkerProgram): () => void {
  const { worker } = cluster as { worker: Worker };
  const send = (message: WorkerMessage): void => {
    if (worker.isConnected()) worker.send(message);
  };
  const limiter = createRemoteLimiter();
  /** From the first configuration on. */
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
    if (serving) serving.then((gateway) => gateway && program.reload(gateway, config, extensions));
    else serving = begin(configuration);
    // It may have been asked to stop before there was anything to stop.
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
