// `usage sync`: copies settled requests into the usage records, once or again and again.
import { setTimeout as sleep } from "node:timers/promises";
import { answer, type Run } from "../commands/terminal.ts";
import { warnOf, withBooks } from "./books-command.ts";
import { copySettled, type SyncResult } from "./usage/sync.ts";

/**
 * With --once one pass, whose error ends the command; else a pass every usage.sync_ms until the
 * command is stopped.
 */
export const usageSyncCommand: Run = withBooks(async ({ books, config, args, terminal }) => {
  const { once } = args.values;
  /** The warnings of the pass before, which are not repeated. */
  let known = new Set<string>();

  async function report({ copied, faults }: SyncResult): Promise<void> {
    const fresh = faults.filter(({ detail }) => !known.has(detail));
    warnOf(terminal, fresh);
    known = new Set(faults.map(({ detail }) => detail));
    if (once || copied > 0)
      await answer(args, terminal, { copied }, `${copied} usage records copied\n`);
  }

  if (once) return await report(await copySettled(books));
  while (!terminal.stopped.aborted) {
    try {
      await report(await copySettled(books));
    } catch (error) {
      terminal.say((error as Error).message);
    }
    const pause = sleep(config.usage.sync_ms, undefined, { signal: terminal.stopped });
    await pause.catch(() => undefined);
  }
});
