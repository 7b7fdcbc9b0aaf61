// Calls the script in Redis or Valkey. Each call also writes this gateway's rows, with what it has
// spent and holds. So there is only one call at a time for an account: its rows must include what
// the call before granted. Tasks that wait meanwhile share the next call.
import type { Budget, SharingOptions } from "../budgets/index.ts";
import type { StoredScript } from "../../scale/redis/index.ts";
import { readAnswers, argumentsOf, type Answer, type OwnFigures, type Task } from "./protocol.ts";

/** The most tasks in one call: the store does nothing else while the script runs. */
const MAX_BATCH = 100;

type Sharing = Pick<SharingOptions, "counters" | "warn" | "clock" | "diagnose">;

export interface TaskQueueOptions extends Sharing {
  /** The script on its server, with the connection to it. */
  readonly script: StoredScript;
  /** Names the rows of this gateway: 32 hex digits. Throws if data_dir cannot be used. */
  readonly gatewayId: () => string;
}

/** A task that waits for a call. */
interface Waiting {
  readonly task: Task;
  readonly resolve: (answer: Answer | undefined) => void;
}

/**
 * Returns a function that runs a task. It resolves with undefined if the store cannot be reached.
 * `ownFigures` returns the content of a row.
 */
export function createTaskQueue(
  options: TaskQueueOptions,
  ownFigures: (budget: Budget) => OwnFigures,
): (task: Task) => Promise<Answer | undefined> {
  const { script, gatewayId, counters, clock } = options;
  /** The waiting tasks of the accounts that have any, or a call in flight. */
  const queues = new Map<string, Waiting[]>();
  let starting: Promise<void> | undefined;
  let gateway: string | undefined;

  async function runBatch(tasks: readonly Task[]): Promise<readonly Answer[] | undefined> {
    starting ??= script.start();
    await starting;
    try {
      gateway ??= gatewayId();
    } catch {
      return undefined; // the ledger refuses requests too, and reports the reason
    }
    const input = argumentsOf(gateway, tasks, ownFigures, clock.now());
    const answers = await script.run(input, (raw) => readAnswers(raw, tasks, counters));
    // Count the holds now: the next call states them in its rows.
    for (const [index, { offer }] of (answers ?? []).entries())
      if (offer) counters.hold(tasks[index]!.spender, offer.cost);
    return answers;
  }

  async function drain(account: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, MAX_BATCH);
      const answers = await runBatch(batch.map(({ task }) => task));
      for (const [index, { resolve }] of batch.entries()) resolve(answers?.[index]);
    }
    queues.delete(account);
  }

  return (task) =>
    new Promise((resolve) => {
      const { account } = task.spender;
      const queue = queues.get(account) ?? [];
      queue.push({ task, resolve });
      if (queues.has(account)) return;
      queues.set(account, queue);
      drain(account, queue);
    });
}
