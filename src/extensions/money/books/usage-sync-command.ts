// `usage sync`: copies settled requests into the usage records, once or continuously.
import { setTimeout as sleep } from "node:timers/promises";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { warnOf, withBooks } from "./books-command.ts";
import { copySettled, usage, type SyncResult } from "../usage/index.ts";

/**
 * With --once, runs one pass, whose error ends the command. Otherwise runs a pass every
 * usage.sync_ms until the command is stopped.
 */
const run = withBooks(async ({ books, config, args, terminal }) => {
  const once = args.values["once"] !== undefined;
  /** The warnings of the previous pass, which are not repeated. */
  let known = new Set<string>();

  async function report({ copied, faults }: SyncResult): Promise<void> {
    const fresh = faults.filter(({ detail }) => !known.has(detail));
    warnOf(terminal, fresh);
    known = new Set(faults.map(({ detail }) => detail));
    if (once || copied > 0)
      await terminal.printResult(args, { copied }, `${copied} usage records copied\n`);
  }

  if (once) return await report(await copySettled(books));
  while (!terminal.stopped.aborted) {
    const result = await copySettled(books).catch((error: Error) => terminal.warn(error.message));
    // A closed pipe ends this command, as it ends every other. A failed write to a file, as on a
    // full disk, does not.
    if (result)
      await report(result).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "EPIPE") throw error;
        terminal.warn(error.message);
      });
    const pause = sleep(usage.of(config).sync_ms, undefined, { signal: terminal.stopped });
    await pause.catch(() => undefined);
  }
});

export const usageSyncCommand: Command = {
  summary: "copy settled spend into the usage records, continuously unless --once",
  example: "usage sync --once",
  options: { once: { help: "copy once and exit" }, json: JSON_OPTION },
  stopsBySignal: true,
  run,
};
