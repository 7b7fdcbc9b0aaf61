// What a command on the books works with.
import type { CommandArguments, Terminal } from "../../../command-line/command.ts";
import type { Config } from "../../../core/config.ts";
import type { Extension } from "../../../core/extension/extension.ts";
import type { BooksFiles } from "../usage/index.ts";

export interface BooksContext {
  /** Open until the command's work has ended. */
  readonly books: BooksFiles;
  /** Loaded without secrets (LoadForCommand). */
  readonly config: Config;
  /** All extensions that are loaded. */
  readonly extensions: readonly Extension[];
  /** The operand and the options of the command. */
  readonly args: CommandArguments;
  /** Prints the results and warnings of the command. */
  readonly terminal: Terminal;
}
