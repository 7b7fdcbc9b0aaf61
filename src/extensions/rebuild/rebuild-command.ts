// `books rebuild`: makes the usage records anew, and prints what that changed.
import { existsSync } from "node:fs";
import { withLock } from "../../core/config/process-lock.ts";
import { withBooks } from "../books/index.ts";
import { answer, type Run } from "../commands/terminal.ts";
import { rebuildBooks } from "./rebuild.ts";

/** Rebuilds the usage records from the spend log, which must be there. */
export const rebuildCommand: Run = withBooks(async ({ books, config, args, terminal }) => {
  if (!existsSync(books.spendDir))
    throw new Error(`there is no spend log in ${config.data_dir} to make usage records from`);
  const lock = { dir: books.spendDir, name: "books", clock: books.clock } as const;
  const { mended, ...counts } = await withLock(lock, () => rebuildBooks(books));
  for (const fault of mended) terminal.say(`was wrong: ${fault}`);
  if (counts.unreadable > 0)
    terminal.say(`warning: ${counts.unreadable} lines of the spend log cannot be read`);
  const { added, changed, removed, unchanged, left } = counts;
  const text =
    `usage records: ${added} added, ${changed} changed, ${removed} removed, ` +
    `${unchanged} as the spend log has them; ` +
    `${left} have no lines there and were left as they were\n`;
  await answer(args, terminal, counts, text);
});
