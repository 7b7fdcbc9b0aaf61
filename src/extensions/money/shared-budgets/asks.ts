// Asks of the script in Redis or Valkey. Each ask writes the rows that it is about as this gateway's
// memory has them, so asks of one account go one after the other: a row must have everything that
// was granted before. What waits meanwhile goes together.
import type { Clock } from "../../../core/clock.ts";
import type { Purses } from "../budgets/index.ts";
import type { StoredScript } from "../../redis/index.ts";
import { readAnswers, wordsOf, type Answer, type Task } from "./protocol.ts";

/** The most tasks of one ask: the store does nothing else meanwhile. */
const TASKS_AN_ASK = 100;

export interface AskOptions {
  /** The script on its server, with the connection to it. */
  readonly script: StoredScript;
  /**
   * Names the rows of this gateway: 32 hexadecimal digits. Undefined: there is no data_dir. The
   * ledger refuses requests then, and tells the operator.
   */
  readonly gatewayId: () => string | undefined;
  /** What this gateway itself spends and holds. What is granted is added at once. */
  readonly purses: Purses;
  /** Its wall clock tells which period it is. */
  readonly clock: Clock;
}

/** A task that waits for its account's turn. */
interface Waiting {
  readonly task: Task;
  readonly resolve: (answer: Answer | undefined) => void;
}

/** Returns what does one task. Undefined: the store cannot be asked. */
export function createAsk(options: AskOptions): (task: Task) => Promise<Answer | undefined> {
  /** Of the accounts that are asked about. */
  const queues = new Map<string, Waiting[]>();

  async function empty(account: string, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.splice(0, TASKS_AN_ASK);
      const tasks = batch.map(({ task }) => task);
      const answers = await askTogether(options, tasks);
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

async function askTogether(
  { script, gatewayId, purses, clock }: AskOptions,
  tasks: readonly Task[],
): Promise<readonly Answer[] | undefined> {
  const gateway = gatewayId();
  if (gateway === undefined) return undefined;
  const raw = await script.run(wordsOf(gateway, tasks, purses, clock.now()));
  if (raw === undefined) return undefined;
  const answers = readAnswers(raw, tasks, purses);
  // At once: the next ask must state it.
  for (const [index, { offer }] of answers.entries())
    purses.hold(tasks[index]!.spender, offer?.cost ?? 0n);
  return answers;
}
