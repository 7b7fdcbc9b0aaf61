// The commands that work on the books: the usage sync, bills, the proof, and the rebuild.
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { auditBooks, type AuditResult } from "./audit.ts";
import { statement, statementCsv } from "./billing.ts";
import { BooksFault } from "./month-files.ts";
import { rebuildBooks } from "./rebuild.ts";
import { withLock, ledgerOf, syncUsage, type Ledger, type SyncResult } from "./sync.ts";
import type { Config } from "../../core/config/schema.ts";
import type { Arguments } from "../commands/arguments.ts";
import { answer, settings, table, type Run, type Terminal } from "../commands/terminal.ts";

const copySettled = (ledger: Ledger): Promise<SyncResult> =>
  withLock(ledger.dir, "books", () => syncUsage(ledger));
const warnOf = (terminal: Terminal, { faults }: SyncResult): void => {
  for (const { detail } of faults) terminal.say(`warning: ${detail}`);
};

type Work = (
  ledger: Ledger,
  args: Arguments,
  terminal: Terminal,
  config: Config,
) => Promise<number | void>;
/** A command that works on the books. */
const withBooks =
  (work: Work): Run =>
  async (args, terminal) => {
    const config = settings(args, terminal);
    const ledger = ledgerOf(config, Date.now, (event) => terminal.say(JSON.stringify(event)));
    return await work(ledger, args, terminal, config).finally(() => ledger.store.close());
  };

/** Whether there is a spend log; a store of its own may have records all the same, files do not. */
function hasSpendLog({ dir }: Ledger, { usage, data_dir }: Config): boolean {
  if (existsSync(dir)) return true;
  if (usage.store === "file")
    throw new Error(`there are no books in ${data_dir}: no gateway has run with it`);
  return false;
}

/** A command that reads the books: `work` sees everything that is settled by now. */
const reading = (work: Work): Run =>
  withBooks(async (ledger, args, terminal, config) => {
    if (hasSpendLog(ledger, config)) warnOf(terminal, await copySettled(ledger));
    return await work(ledger, args, terminal, config);
  });

/** Says what an audit found, for people. */
function auditText(found: AuditResult, keepDays: number): string {
  const sums = (costs: Readonly<Record<string, string>>) =>
    Object.entries(costs)
      .map(([currency, cost]) => `${cost} ${currency}`)
      .join(", ") || "0";
  const { proved, retired, not_proved: rest } = found;
  const lines = [
    `settled ${found.settled} for ${sums(found.cost_settled)}; recorded ${found.recorded} for ${sums(found.cost_recorded)}; in flight ${found.in_flight}`,
    proved.requests > 0
      ? `proved: ${proved.requests} requests settled from ${proved.from} to ${proved.to}`
      : "proved: nothing, the spend log has no settled request that is in the usage records",
  ];
  if (retired.records > 0)
    lines.push(
      `proved by the sums of retired segments: ${retired.records} records from ${retired.from} to ${retired.to}`,
    );
  if (rest.records > 0)
    lines.push(
      `not proved: ${rest.records} usage records that ended from ${rest.from} to ${rest.to}: the spend log keeps ${keepDays} days and has nothing of them any more, and no sums of retired segments agree with them`,
    );
  const verdict = found.ok
    ? "the books are right"
    : ["the books are wrong:", ...found.differences].join("\n  ");
  return [...lines, verdict, ""].join("\n");
}

/** Compares all that can be compared, also where the usage records are damaged so that nothing can be copied into them. */
const audit: Run = withBooks(async (ledger, args, terminal, config) => {
  const faults: string[] = [];
  if (hasSpendLog(ledger, config)) {
    try {
      await copySettled(ledger);
    } catch (error) {
      if (!(error instanceof BooksFault)) throw error;
      faults.push(error.message);
    }
  }
  const found = await withLock(ledger.dir, "books", () => auditBooks(ledger, faults));
  await answer(args, terminal, found, auditText(found, ledger.keepDays));
  return found.ok ? 0 : 1;
});

const rebuild: Run = withBooks(async (ledger, args, terminal, { data_dir }) => {
  if (!existsSync(ledger.dir))
    throw new Error(`there is no spend log in ${data_dir} to make usage records from`);
  const { mended, ...counts } = await withLock(ledger.dir, "books", () => rebuildBooks(ledger));
  for (const fault of mended) terminal.say(`was wrong: ${fault}`);
  if (counts.unreadable > 0)
    terminal.say(`warning: ${counts.unreadable} lines of the spend log cannot be read`);
  const { added, changed, removed, unchanged, left } = counts;
  const text = `usage records: ${added} added, ${changed} changed, ${removed} removed, ${unchanged} as the spend log has them; ${left} have no lines there and were left as they were\n`;
  await answer(args, terminal, counts, text);
});

export const BOOKS_COMMANDS = {
  "usage sync": withBooks(async (ledger, args, terminal, { usage }) => {
    const { once } = args.values;
    let known = new Set<string>(); // warnings of the pass before
    const tell = async ({ copied, faults }: SyncResult) => {
      warnOf(terminal, { copied, faults: faults.filter(({ detail }) => !known.has(detail)) });
      known = new Set(faults.map(({ detail }) => detail));
      if (once || copied > 0)
        await answer(args, terminal, { copied }, `${copied} usage records copied\n`);
    };
    if (once) return await tell(await copySettled(ledger));
    while (!terminal.stopped.aborted) {
      await copySettled(ledger)
        .then(tell)
        .catch((error: Error) => terminal.say(error.message));
      await pause(usage.sync_ms, undefined, { signal: terminal.stopped }).catch(() => undefined);
    }
  }),
  "billing statement": reading(async (ledger, args, terminal) => {
    const { store } = ledger;
    const { account = "", month = "", format = args.values.json ? "json" : "table" } = args.values;
    if (format === "csv")
      return await statementCsv(store, { account, month }, terminal.print, args.values.currency);
    const currency = args.values.currency ?? ledger.currency;
    const found = await statement(store, { account, month, currency });
    const columns = [
      "model",
      "requests",
      "prompt_cache_hit_tokens",
      "prompt_cache_miss_tokens",
      "completion_tokens",
      "cost",
    ] as const;
    if (found.total.requests === 0) terminal.say(`${account} has no usage records in ${month}`);
    for (const [other, requests] of Object.entries(found.other_currencies))
      terminal.say(
        `warning: ${requests} requests were billed in ${other} and are not in these sums: --currency ${other} has them`,
      );
    const sums = table(columns, [...found.lines, { model: "total", ...found.total }]);
    return await answer(
      { ...args, values: { json: format === "json" } },
      terminal,
      found,
      `${account}, ${month}, in ${currency}\n${sums}`,
    );
  }),
  "billing trace": reading(async ({ store }, args, terminal) => {
    const columns = [
      "account",
      "key_id",
      "model",
      "provider",
      "status",
      "prompt_tokens",
      "completion_tokens",
      "cost",
      "currency",
      "ended_at",
      "usage_id",
    ] as const;
    const { json } = args.values;
    let found = 0;
    if (json)
      await terminal.print(`{"gateway_request_id":${JSON.stringify(args.operand)},"records":[`);
    for await (const records of store.records({ requestId: args.operand })) {
      await terminal.print(
        json
          ? `${found > 0 ? "," : ""}${JSON.stringify(records).slice(1, -1)}`
          : table(columns, records),
      );
      found += records.length;
    }
    if (json) await terminal.print("]}\n");
    if (found === 0)
      throw new Error(
        `no usage record has the gateway_request_id ${JSON.stringify(args.operand)}: it is on its way, or no provider was called`,
      );
  }),
  "books rebuild": rebuild,
  audit,
} satisfies Readonly<Record<string, Run>>;
