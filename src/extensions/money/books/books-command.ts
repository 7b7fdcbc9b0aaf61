// What every command that works on the books has in common.
import { existsSync } from "node:fs";
import { systemClock } from "../../../core/clock.ts";
import type { Command, Terminal } from "../../../command-line/command.ts";
import type { StoreFault } from "../records/index.ts";
import type { BooksContext } from "./books-context.ts";
import { isFileStore, openBooks, usage } from "../usage/index.ts";
import { copyShown } from "./books-progress.ts";

/** Does what a command is for. Resolves with its exit code; undefined is 0. */
export type BooksWork = (context: BooksContext) => Promise<number | void>;

/** Runs a command that works on the books. They are closed when the work has ended. */
export const withBooks =
  (work: BooksWork): Command["run"] =>
  async (args, terminal) => {
    const { config, extensions } = await terminal.load(args, { withoutSecrets: true });
    const diagnose = (event: object): void => terminal.warn(JSON.stringify(event));
    const books = openBooks(config, { clock: systemClock, diagnose, extensions });
    return await work({ books, config, extensions, args, terminal }).finally(() =>
      books.store.close(),
    );
  };

/** Runs a command that reads usage records. Everything that is settled by now is copied before. */
export const withCopiedBooks = (work: BooksWork): Command["run"] =>
  withBooks(async (context) => {
    if (hasSpendLog(context)) {
      const { faults } = await copyShown(context);
      warnOf(context.terminal, faults);
    }
    return await work(context);
  });

/**
 * Whether there is a spend log to copy from. Throws if there is none and the usage records are in
 * files, because then there are no books at all. A database may have records of other gateways.
 */
export function hasSpendLog({ books, config }: BooksContext): boolean {
  if (existsSync(books.spendDir)) return true;
  if (isFileStore(usage.of(config).store))
    throw new Error(`there are no books in ${config.data_dir}: no gateway has run with it`);
  return false;
}

/** Prints faults as warnings on standard error. */
export function warnOf(terminal: Terminal, faults: readonly StoreFault[]): void {
  for (const { detail } of faults) terminal.warn(`warning: ${detail}`);
}
