// `books rebuild`: makes the usage records anew, and prints what that changed.
import { existsSync } from "node:fs";
import { JSON_OPTION, type Command } from "../../command-line/command.ts";
import { withLock } from "../data-files/index.ts";
import { bookSizes, withBooks, withProgress, type BookSizes } from "../books/index.ts";
import { rebuildBooks } from "./rebuild.ts";

/** It reads the spend log three times, and the usage records twice. */
const bytesRead = ({ spend, usage }: BookSizes): number => 3 * spend + 2 * usage();

const run = withBooks(async (context) => {
  const { books, config, args, terminal } = context;
  if (!existsSync(books.spendDir))
    throw new Error(`there is no spend log in ${config.data_dir} to make usage records from`);
  const lock = { dir: books.spendDir, name: "books", clock: books.clock } as const;
  const { mended, ...counts } = await withProgress(
    context,
    "rebuild",
    () => bytesRead(bookSizes(context)),
    () => withLock(lock, () => rebuildBooks(books)),
  );
  for (const fault of mended) terminal.warn(`was wrong: ${fault}`);
  if (counts.unreadable > 0)
    terminal.warn(`warning: ${counts.unreadable} lines of the spend log cannot be read`);
  const { added, changed, removed, unchanged, left } = counts;
  const text =
    `usage records: ${added} added, ${changed} changed, ${removed} removed, ` +
    `${unchanged} as the spend log has them; ` +
    `${left} have no lines there and were left as they were\n`;
  await terminal.answer(args, counts, text);
});

/** Rebuilds the usage records from the spend log, which must be there. */
export const rebuildCommand: Command = {
  summary: "make the usage records anew from the spend log, and tell what that changed",
  example: "books rebuild --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
