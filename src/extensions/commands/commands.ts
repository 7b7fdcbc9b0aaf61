// The commands other than `serve`: each prints its answer, for programs or as a table for people, and returns its exit code, if not 0;
// what it throws is told on standard error, with exit code 1.
import { join } from "node:path";
import { loadPeer } from "../../core/config/peer.ts";
import { withLock, ledgerOf } from "../books/sync.ts";
import {
  createKey,
  fixedKeys,
  keyFile,
  readKeys,
  revokeKey,
  storedKeysIn,
} from "../../core/accounts/keys.ts";
import { loadConfig } from "../../core/config/load.ts";
import { warningsOf } from "./warnings.ts";
import { pathText } from "../../core/schema/checker.ts";
import { rank } from "../../core/routing/policy.ts";
import { HELP, UsageError, type Arguments } from "./arguments.ts";
import { BOOKS_COMMANDS } from "../books/commands.ts";
import { page, topics } from "../manual/index.ts";
import words from "./explain.json" with { type: "json" };
import { answer, settings, table, type Run } from "./terminal.ts";

export const COMMANDS: Readonly<Record<Exclude<Arguments["command"], "serve">, Run>> = {
  help: async ({ operand }, { print }) => {
    await print(operand === "" ? `${HELP}\n\n${topicList()}` : manualPage(operand));
  },
  async check(args, terminal) {
    const { config, source } = loadConfig({
      file: args.values.config,
      env: terminal.env,
      here: true,
    });
    await ledgerOf(config, Date.now, () => undefined).store.close(); // are the packages that its stores need installed?
    if (config.limits.store !== "memory") loadPeer("redis", "limits.store");
    const found = warningsOf(config, storedKeysIn(config.data_dir), Date.now());
    const warnings = found.map(({ path, message }) => ({ path: pathText(path), message }));
    for (const { path, message } of warnings) terminal.say(`warning: ${path} ${message}`);
    const counts = {
      models: config.models.size,
      aliases: config.aliases.size,
      keys: config.keys.length,
    };
    const summary = Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
    return await answer(
      args,
      terminal,
      { ok: true, source: source ?? null, ...counts, warnings },
      `${source ?? "the demo configuration"} is valid: ${summary}\n`,
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
    const { key, stored } = await withLock(join(config.data_dir, "spend"), "keys", () =>
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
    const revoked = await withLock(join(config.data_dir, "spend"), "keys", () =>
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
  ...BOOKS_COMMANDS,
};

/** The topics of the manual as `help` lists them. */
function topicList(): string {
  const list = topics();
  const width = Math.max(...list.map(({ name }) => name.length));
  const lines = list.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`);
  return `The manual: \`help TOPIC\` prints a page.\n\n${lines.join("")}`;
}

function manualPage(name: string): string {
  const text = page(name);
  if (text !== undefined) return text;
  const names = topics().map((topic) => topic.name);
  throw new UsageError(
    `the manual has no topic ${JSON.stringify(name)}; topics: ${names.join(", ")}`,
  );
}
