// Shared by the commands on the books: opening them, and running a pass first.
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Command, CommandArguments, Terminal } from "../../../command-line/command.ts";
import { pathExists } from "../../scale/data-files/index.ts";
import type { StoreFault } from "../records/index.ts";
import { copySettled, hasFileStore, openBooks, type BooksFiles } from "../usage/index.ts";

/** What a command on the books works with. */
export interface BooksContext {
  /** The books, open until the work has ended. */
  readonly books: BooksFiles;
  /** The configuration, loaded without secrets (LoadForCommand). */
  readonly config: Config;
  /** The operand and the options of the command. */
  readonly args: CommandArguments;
  /** Prints the results and warnings of the command. */
  readonly terminal: Terminal;
}

/** Does the work of a command. Resolves with its exit code; undefined is 0. */
type BooksWork = (context: BooksContext) => Promise<number | void>;

/** A command that works on the books, which are closed when the work has ended. */
export const withBooks =
  (work: BooksWork): Command["run"] =>
  async (args, terminal) => {
    const { config, installed } = await terminal.load(args, { secretsOptional: true });
    const diagnose = (event: object): void => terminal.warn(JSON.stringify(event));
    const books = openBooks(config, { clock: systemClock, diagnose, installed });
    return await work({ books, config, args, terminal }).finally(() => books.store.close());
  };

/** A command that reads usage records. It first copies everything that is settled by now. */
export const withCopiedBooks = (work: BooksWork): Command["run"] =>
  withBooks(async (context) => {
    // A database may have records of other gateways.
    if (hasFileStore(context.config)) assertSpendLog(context);
    if (pathExists(context.books.spendDir)) {
      const { faults } = await copySettled(context.books);
      warnOf(context.terminal, faults);
    }
    return await work(context);
  });

/** Throws if there is no spend log, which a gateway makes when it starts. */
export function assertSpendLog({ books }: BooksContext): void {
  if (pathExists(books.spendDir)) return;
  const why = "no gateway has run with it, or its spend log is gone";
  throw new Error(`there are no books in ${books.dataDir}: ${why}`);
}

/** Prints faults as warnings on standard error. */
export function warnOf(terminal: Terminal, faults: readonly StoreFault[]): void {
  for (const { detail } of faults) terminal.warn(`warning: ${detail}`);
}
