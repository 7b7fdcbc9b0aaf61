// `budget show`: what is spent and held of the budgets of an account and its keys, by the books
// alone. It needs no running gateway: the open lines of the spend log state what one holds.
import { join } from "node:path";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { isUnread, keysInConfig } from "../../operations/keys/index.ts";
import { hasWriter } from "../ledger/index.ts";
import { parseMoney } from "../records/index.ts";
import type { BooksFiles } from "../usage/index.ts";
import { withCopiedBooks } from "../books/index.ts";
import { allBudgets } from "./limits.ts";
import { createSpendCounters, type SpendCounters } from "./spend-counters.ts";
import { readSpent } from "./read-books.ts";
import { printedFigures } from "./status.ts";

const COLUMNS = ["budget", "period", "amount", "spent", "held", "left", "ends"] as const;

/** Adds what is held for running requests. */
async function addHeld(
  { spendDir, openSegments }: BooksFiles,
  counters: SpendCounters,
): Promise<void> {
  for (const [name, reader] of openSegments) {
    // The requests of a dead process do not run any more.
    if (!(await hasWriter(join(spendDir, name)))) continue;
    for (const record of reader.unsettled()) counters.hold(record, parseMoney(record.hold ?? "0"));
  }
}

const show = withCopiedBooks(async ({ books, config, args, terminal }) => {
  const { operand: account } = args;
  const own = allBudgets(config).filter((budget) => budget.account === account);
  const unread = keysInConfig(config).filter(
    (key) => key.account === account && key.budget && isUnread(key),
  ).length;
  if (unread > 0)
    terminal.warn(`warning: budgets of keys whose secrets cannot be read are not shown: ${unread}`);
  if (own.length === 0 && unread > 0) throw new Error(`no budget of ${account} can be shown`);
  if (own.length === 0) throw new Error(`${account} has no budget, and none of its keys has one`);
  const counters = createSpendCounters(books.clock.now);
  // Without a shared store each gateway counts only its own spending.
  const spent = await readSpent(books, config.limits.store === "memory");
  for (const each of spent) counters.spend(each);
  await addHeld(books, counters);
  const budgets = own.map((budget) => printedFigures(counters.figures(budget), books.currency));
  const rows = budgets.map((row) => ({
    ...row,
    budget: row.account ?? row.key_id,
    ends: row.ends ?? "never",
  }));
  const text = `in ${books.currency}\n${table(COLUMNS, rows)}`;
  await terminal.printResult(args, { account, budgets }, text);
});

export const showCommand: Command = {
  summary: "what is spent, held and left of an account's budgets",
  operand: "ACCOUNT",
  operandHelp: "the account whose budgets, and those of its keys, are shown",
  example: "budget show acme",
  options: { json: JSON_OPTION },
  run: show,
};
