// A worker: a gateway that asks the first process for the admission of its requests. It has a spend
// log segment, connections and breakers of its own.
import cluster, { type Worker } from "node:cluster";
import {
  decide,
  type AdmissionDecision,
  type AdmissionRequest,
  type Limiter,
} from "../../core/accounts/limiter.ts";
import type { WorkerGateway, WorkerProgram } from "../../command-line/processes.ts";
import type { ConfigMessage, PrimaryMessage, WorkerMessage } from "./messages.ts";

/** Returns what stops the worker, as soon as it serves. */
export function runWorker(program: WorkerProgram): () => void {
  const { worker } = cluster as { worker: Worker };
  const send = (message: WorkerMessage): void => {
    if (worker.isConnected()) worker.send(message);
  };
  const limiter = createRemoteLimiter(send);
  /** From the first configuration on. */
  let serving: Promise<WorkerGateway | undefined> | undefined;
  let isEnding = false;
  let stopRequested = false;

  async function begin({ config, extensions }: ConfigMessage): Promise<WorkerGateway | undefined> {
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

  worker.on(
    "message",
    ({ decisions = [], configuration, report, stop: toStop }: PrimaryMessage) => {
      for (const decision of decisions) limiter.decided(decision);
      if (configuration) configure(configuration);
      if (report) serving?.then((gateway) => gateway && send({ report: gateway.report() }));
      if (toStop) stop();
    },
  );
  worker.send({ born: true });
  return stop;
}

/** A limiter whose windows and slots are in the first process. */
interface RemoteLimiter extends Limiter {
  /** The answer to the oldest question has come. */
  decided(decision: AdmissionDecision): void;
}

/** What is asked in one turn of the event loop goes out in one message. */
function createRemoteLimiter(send: (message: WorkerMessage) => void): RemoteLimiter {
  const waiting: ((decision: AdmissionDecision) => void)[] = [];
  let questions: AdmissionRequest[] = [];

  function takeQuestions(): readonly AdmissionRequest[] {
    const taken = questions;
    questions = [];
    return taken;
  }
  function ask(): void {
    if (questions.length > 0) send({ admit: takeQuestions() });
  }

  return {
    admit(request) {
      const isUnlimited = request.limits.every(({ rpm }) => rpm === null);
      if (request.maxInFlight === null && isUnlimited) return decide(true, []);
      if (questions.length === 0) setImmediate(ask);
      questions.push(plain(request));
      return new Promise((resolve) => {
        waiting.push(resolve);
      });
    },
    // At once: the first process must know of it before the client knows that its answer has ended.
    release(request) {
      if (request.maxInFlight !== null) send({ admit: takeQuestions(), released: plain(request) });
    },
    used: () => 0, // the first process knows
    decided: (decision) => waiting.shift()?.(decision),
  };
}

/** Only what the limiter needs: a request is also a caller, of which more would be copied. */
const plain = ({ account, limits, maxInFlight }: AdmissionRequest): AdmissionRequest => ({
  account,
  limits,
  maxInFlight,
});
