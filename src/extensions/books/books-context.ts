// What a command on the books works with.
import type { CommandArguments, Terminal } from "../../command-line/command.ts";
import type { Config } from "../../core/config.ts";
import type { Extension } from "../../core/extension/extension.ts";
import type { BooksFiles } from "./books-files.ts";

export interface BooksContext {
  readonly books: BooksFiles;
  readonly config: Config;
  /** All extensions that are loaded. */
  readonly extensions: readonly Extension[];
  readonly args: CommandArguments;
  readonly terminal: Terminal;
}
