// The commands other than `serve`: each prints its answer, for programs or as a table for people, and returns its exit code, if not 0;
// what it throws is told on standard error, with exit code 1.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { auditBooks, type AuditResult } from "../accounting/audit.ts";
import { loadPeer } from "../accounting/peer.ts";
import { statement, statementCsv } from "../accounting/billing.ts";
import { BooksFault } from "../accounting/month-files.ts";
import { rebuildBooks } from "../accounting/rebuild.ts";
import { holding, ledgerOf, syncUsage, type Ledger, type SyncResult } from "../accounting/sync.ts";
import { createKey, fixedKeys, keyFile, readKeys, revokeKey } from "../accounts/keys.ts";
import { loadConfig } from "../config/load.ts";
import type { Config, Environment } from "../config/schema.ts";
import { rank } from "../routing/policy.ts";
import { HELP, UsageError, type Arguments } from "./arguments.ts";
import words from "./explain.json" with { type: "json" };

/** What a command needs of the process: `print` text to standard output, `say` a line to standard error; `stopped` when it is to end. */
export interface Terminal {
  readonly env: Environment;
  readonly print: (text: string) => Promise<void>;
  readonly say: (line: string) => void;
  readonly stopped: AbortSignal;
  /** What root writes from here on is this user's, or a gateway that is not root could not read it. */
  readonly actAs: (user: { readonly uid: number; readonly gid: number }) => void;
}
type Run = (args: Arguments, terminal: Terminal) => Promise<number | void>;

/** Prints what was found, for programs or for people. */
const answer = ({ values }: Arguments, { print }: Terminal, data: unknown, text: string) =>
  print(values.json ? `${JSON.stringify(data)}\n` : text);

/** For commands that call no provider: a secret that is not set in this shell is no fault. They act as the owner of data_dir. */
function settings({ values }: Arguments, { env, actAs }: Terminal): Config {
  const { config } = loadConfig({ file: values.config, env, secretsOptional: true });
  if (existsSync(config.data_dir)) actAs(statSync(config.data_dir));
  return config;
}

/** Columns as wide as their widest cell, numbers to the right, "-" for what is not there. */
function table<K extends string>(
  columns: readonly K[],
  records: readonly { readonly [column in K]: unknown }[],
): string {
  const rows = [
    columns,
    ...records.map((record) => columns.map((column) => String(record[column] ?? "-"))),
  ];
  const widths = columns.map((_, at) =>
    rows.reduce((width, row) => Math.max(width, row[at]!.length), 0),
  ); // there may be too many to spread
  const numeric = columns.map((_, at) =>
    rows.slice(1).every((row) => /^([\d.]+|-)$/.test(row[at]!)),
  );
  const cell = (text: string, at: number) =>
    numeric[at] ? text.padStart(widths[at]!) : text.padEnd(widths[at]!);
  return rows.map((row) => `  ${row.map(cell).join("  ").trimEnd()}\n`).join("");
}

const copySettled = (ledger: Ledger): Promise<SyncResult> =>
  holding(ledger.dir, "books", () => syncUsage(ledger));
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
  const { proved, not_proved: rest } = found;
  const lines = [
    `settled ${found.settled} for ${sums(found.cost_settled)}; recorded ${found.recorded} for ${sums(found.cost_recorded)}; in flight ${found.in_flight}`,
    proved.requests > 0
      ? `proved: ${proved.requests} requests settled from ${proved.from} to ${proved.to}`
      : "proved: nothing, the spend log has no settled request that is in the usage records",
  ];
  if (rest.records > 0)
    lines.push(
      `not proved: ${rest.records} usage records that ended from ${rest.from} to ${rest.to}: the spend log keeps ${keepDays} days and has nothing of them any more`,
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
  const found = await holding(ledger.dir, "books", () => auditBooks(ledger, faults));
  await answer(args, terminal, found, auditText(found, ledger.keepDays));
  return found.ok ? 0 : 1;
});

const rebuild: Run = withBooks(async (ledger, args, terminal, { data_dir }) => {
  if (!existsSync(ledger.dir))
    throw new Error(`there is no spend log in ${data_dir} to make usage records from`);
  const { mended, ...counts } = await holding(ledger.dir, "books", () => rebuildBooks(ledger));
  for (const fault of mended) terminal.say(`was wrong: ${fault}`);
  if (counts.unreadable > 0)
    terminal.say(`warning: ${counts.unreadable} lines of the spend log cannot be read`);
  const { added, changed, removed, unchanged, left } = counts;
  const text = `usage records: ${added} added, ${changed} changed, ${removed} removed, ${unchanged} as the spend log has them; ${left} have no lines there and were left as they were\n`;
  await answer(args, terminal, counts, text);
});

export const COMMANDS: Readonly<Record<Exclude<Arguments["command"], "serve">, Run>> = {
  help: (_, { print }) => print(`${HELP}\n`),
  async check(args, terminal) {
    const { config, source } = loadConfig({ file: args.values.config, env: terminal.env });
    await ledgerOf(config, Date.now, () => undefined).store.close(); // are the packages that its stores need installed?
    if (config.limits.store !== "memory") loadPeer("redis", "limits.store");
    const hopeless = [...config.aliases].filter(
      ([, alias]) => alias.enabled && rank(config, alias).every((each) => each.rank === null),
    );
    for (const [name] of hopeless)
      terminal.say(`warning: aliases.${name} has no candidate: every request for it would get 503`);
    const counts = {
      models: config.models.size,
      aliases: config.aliases.size,
      keys: config.keys.length,
    };
    const found = Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
    return await answer(
      args,
      terminal,
      { ok: true, source: source ?? null, ...counts },
      `${source ?? "the demo configuration"} is valid: ${found}\n`,
    );
  },
  async explain(args, terminal) {
    const { config } = loadConfig({ file: args.values.config, env: terminal.env });
    const alias = config.aliases.get(args.operand);
    const kind = config.models.has(args.operand)
      ? "is a model, and is served by itself or not at all"
      : "is not an alias here";
    if (!alias)
      throw new Error(
        `'${args.operand}' ${kind}; aliases: ${[...config.aliases.keys()].join(", ") || "none"}`,
      );
    const candidates = rank(config, alias).map((row) => ({
      ...row,
      provider: config.models.get(row.model)!.provider,
    }));
    const { enabled, policy = "list" } = alias;
    const title = `${args.operand}${enabled ? "" : " (disabled)"}: ${words.order[policy]}`;
    const fate = words.fate[candidates.some(({ rank }) => rank !== null) ? "some" : "none"];
    const text = `${title}\n${table(["rank", "model", "provider", "why"], candidates)}${fate}\n`;
    return await answer(args, terminal, { alias: args.operand, enabled, policy, candidates }, text);
  },
  async "keys create"(args, terminal) {
    const { account = "", name = null, rpm, models, expires } = args.values;
    const config = settings(args, terminal);
    const names = models?.split(",").map((model) => model.trim()) ?? null;
    const unknown = names?.find((model) => !config.models.has(model) && !config.aliases.has(model));
    if (unknown !== undefined)
      throw new UsageError(`--models: there is no model or alias named '${unknown}'`);
    const given = {
      account,
      name,
      rpm: rpm === undefined ? null : Number(rpm),
      models: names,
      expires: expires === undefined ? null : new Date(expires).toISOString(),
    };
    const { key, stored } = await holding(join(config.data_dir, "spend"), "keys", () =>
      createKey(keyFile(config.data_dir), given, Date.now()),
    );
    terminal.say(
      `${stored.key_id} of account ${account}: the key is shown this once, only its SHA-256 is kept`,
    );
    return await answer(args, terminal, { key, ...stored }, `${key}\n`);
  },
  async "keys list"(args, terminal) {
    const config = settings(args, terminal);
    const list = [...fixedKeys(config), ...readKeys(keyFile(config.data_dir))].map(
      ({ sha256: _, ...key }) => key,
    );
    return await answer(
      args,
      terminal,
      list,
      table(["key_id", "account", "name", "rpm", "models", "created", "expires", "revoked"], list),
    );
  },
  async "keys revoke"(args, terminal) {
    const config = settings(args, terminal);
    const revoked = await holding(join(config.data_dir, "spend"), "keys", () =>
      revokeKey(keyFile(config.data_dir), args.operand, Date.now()),
    );
    if (revoked)
      return await answer(
        args,
        terminal,
        { key_id: revoked.key_id, revoked: revoked.revoked },
        `${revoked.key_id} of account ${revoked.account} is revoked\n`,
      );
    const fixed = fixedKeys(config).some(({ key_id }) => key_id === args.operand);
    throw new Error(
      fixed
        ? `${args.operand} stands in the configuration: take it out there`
        : `there is no key ${args.operand}; 'keys list' shows them`,
    );
  },
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
};
