// Asks the script in Redis or Valkey. Each ask writes its rows as the memory of this gateway has
// them, so the asks of one account go one after the other: a row must have everything that was
// granted before.
import type { Budget, SharingOptions } from "../budgets/index.ts";
import type { StoredScript } from "../../scale/redis/index.ts";
import { readAnswer, wordsOf, type Answer, type OwnFigures, type Task } from "./protocol.ts";

export interface AskOptions extends Pick<SharingOptions, "purses" | "warn" | "clock" | "diagnose"> {
  /** The script on its server, with the connection to it. */
  readonly script: StoredScript;
  /** Names the rows of this gateway: 32 hexadecimal digits. Throws without a data_dir. */
  readonly gatewayId: () => string;
}

/** Returns what does a task. Undefined: the store cannot be asked. `rowOf`: as in wordsOf. */
export function createAsk(
  options: AskOptions,
  rowOf: (budget: Budget) => OwnFigures,
): (task: Task) => Promise<Answer | undefined> {
  const { script, gatewayId, purses, clock } = options;
  /** The last ask of each account that is asked about. */
  const turns = new Map<string, Promise<Answer | undefined>>();
  let starting: Promise<void> | undefined;
  let gateway: string | undefined;

  async function ask(task: Task, before: Promise<unknown> | undefined) {
    await before;
    starting ??= script.start();
    await starting;
    try {
      gateway ??= gatewayId();
    } catch {
      return undefined; // the ledger refuses requests too, and tells the operator
    }
    const raw = await script.run(wordsOf(gateway, task, rowOf, clock.now()));
    if (raw === undefined) return undefined;
    const answer = readAnswer(raw, task, purses);
    // At once: the next ask must state it.
    if (answer.offer) purses.hold(task.spender, answer.offer.cost);
    return answer;
  }

  return async (task) => {
    const { account } = task.spender;
    const turn = ask(task, turns.get(account));
    turns.set(account, turn);
    const answer = await turn;
    if (turns.get(account) === turn) turns.delete(account);
    return answer;
  };
}
