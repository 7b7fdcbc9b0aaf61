// `budget show`: how the budgets of an account and its keys stand, by the books alone. It needs no
// running gateway; what one holds is in the open lines of its spend log.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { JSON_OPTION, type Command } from "../../command-line/command.ts";
import { table } from "../../command-line/table.ts";
import { configuredKeys } from "../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../core/accounts/limiter.ts";
import type { Config } from "../../core/config.ts";
import { parseMoney } from "../usage-records/index.ts";
import {
  claimFileOf,
  readSegment,
  segmentsIn,
  withCopiedBooks,
  type BooksFiles,
} from "../books/index.ts";
import { createdKeysIn } from "../keys/index.ts";
import type { SpendLimit } from "./contracts.ts";
import { accountLimit, keyLimit } from "./limits.ts";
import { periodEnd, periodName } from "./periods.ts";
import { readSpent } from "./read-books.ts";
import { printed } from "./status.ts";

const COLUMNS = ["budget", "period", "amount", "spent", "held", "left", "ends"] as const;

/** The limits of an account and of its keys. */
function limitsOf(account: string, config: Config): readonly SpendLimit[] {
  // As the keyring: a key of the configuration takes the place of one that was made.
  const keys = new Map([...createdKeysIn(config.data_dir).byDigest, ...configuredKeys(config)]);
  const own = [...keys.values()].filter((key) => key.account === account);
  return [
    accountLimit(account, config),
    ...own.map((terms) => keyLimit(terms.key_id, terms)),
  ].filter((limit) => limit !== undefined);
}

/** What is held for requests that run, by the names of accounts and keys. */
async function readHeld({ spendDir }: BooksFiles): Promise<ReadonlyMap<string, bigint>> {
  const held = new Map<string, bigint>();
  const segments = existsSync(spendDir) ? segmentsIn(spendDir) : [];
  for (const path of segments.map((name) => join(spendDir, name))) {
    // In a segment that no process writes, nothing is open.
    if (!existsSync(claimFileOf(path))) continue;
    const { unsettled } = await readSegment(path);
    for (const { account, key_id, hold = "0" } of unsettled.values())
      for (const name of [accountLimitName(account), keyLimitName(key_id)])
        held.set(name, (held.get(name) ?? 0n) + parseMoney(hold));
  }
  return held;
}

const show = withCopiedBooks(async ({ books, config, args, terminal }) => {
  const { operand: account } = args;
  const now = books.clock.now();
  const limits = limitsOf(account, config).filter(({ budget }) => budget);
  if (limits.length === 0) throw new Error(`${account} has no budget, and no key of it has one`);
  const query = {
    month: periodName("month", now),
    before: Infinity,
    withEarlier: limits.some(({ budget }) => budget?.period === "total"),
  };
  // Without a shared store each gateway counts what it spends itself.
  const ownOnly = config.limits.store === "memory";
  const spent = await readSpent(books, query, { now, ownOnly });
  const held = await readHeld(books);
  const budgets = limits.flatMap(({ name, budget }) =>
    budget
      ? printed(
          {
            name,
            ...budget,
            spent: spent.get(name)?.[budget.period] ?? 0n,
            held: held.get(name) ?? 0n,
            ends: periodEnd(budget.period, now),
            at: now,
          },
          books.currency,
        )
      : [],
  );
  const rows = budgets.map((row) => ({
    ...row,
    budget: row.account ?? row.key_id,
    ends: row.ends ?? "never",
  }));
  const data = { account, budgets };
  await terminal.answer(args, data, `in ${books.currency}\n${table(COLUMNS, rows)}`);
});

export const showCommand: Command = {
  summary: "what of an account's budgets is spent, held and left",
  operand: "ACCOUNT",
  operandMeaning: "the account whose budgets, and those of its keys, are shown",
  example: "budget show acme",
  options: { json: JSON_OPTION },
  run: show,
};
