// Asks the script in Redis or Valkey. Each ask writes its rows as the memory of this gateway has
// them, so the asks of one account go one after the other: a row must have everything that was
// granted before. What waits meanwhile goes together.
import type { Budget, SharingOptions } from "../budgets/index.ts";
import type { StoredScript } from "../../scale/redis/index.ts";
import { readAnswers, wordsOf, type Answer, type OwnFigures, type Task } from "./protocol.ts";

/** The most tasks of one ask: the store does nothing else meanwhile. */
const TASKS_AN_ASK = 100;

export interface AskOptions extends Pick<SharingOptions, "purses" | "warn" | "clock" | "diagnose"> {
  /** The script on its server, with the connection to it. */
  readonly script: StoredScript;
  /** Names the rows of this gateway: 32 hexadecimal digits. Throws without a data_dir. */
  readonly gatewayId: () => string;
}

/** A task that waits for its account's turn. */
interface Waiting {
  readonly task: Task;
  readonly resolve: (answer: Answer | undefined) => void;
}

/** Returns what does a task. Undefined: the store cannot be asked. `rowOf`: as in wordsOf. */
export function createAsk(
  options: AskOptions,
  rowOf: (budget: Budget) => OwnFigures,
): (task: Task) => Promise<Answer | undefined> {
  const { script, gatewayId, purses, clock } = options;
  /** Of the accounts that are asked about. */
  const queues = new Map<string, Waiting[]>();
  let starting: Promise<void> | undefined;
  let gateway: string | undefined;

  async function askTogether(tasks: readonly Task[]): Promise<readonly Answer[] | undefined> {
    starting ??= script.start();
    await starting;
    try {
      gateway ??= gatewayId();
    } catch {
      return undefined; // the ledger refuses requests too, and tells the operator
    }
    const words = wordsOf(gateway, tasks, rowOf, clock.now());
    const answers = await script.run(words, (raw) => readAnswers(raw, tasks, purses));
    // At once: the next ask must state it.
    for (const [index, { offer }] of (answers ?? []).entries())
      if (offer) purses.hold(tasks[index]!.spender, offer.cost);
    return answers;
  }

  async function empty(account: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, TASKS_AN_ASK);
      const answers = await askTogether(batch.map(({ task }) => task));
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
      empty(account, queue);
    });
}
