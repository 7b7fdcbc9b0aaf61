// The commands `keys create`, `keys list` and `keys revoke`.
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import type { Config } from "../../../core/config.ts";
import { ValidationError } from "../../../core/schema/checker.ts";
import { createKey, keyFile, readKeys, revokeKey } from "./created-keys.ts";
import {
  checkedTerms,
  isConfigured,
  isUnread,
  keysInConfig,
  listed,
  type NewKey,
} from "./schema.ts";

/** Shown as the name of a key in gateway.json, which has none. */
const IN_CONFIG = "(in the configuration)";
const IN_CONFIG_UNREAD = "(in the configuration; its secret cannot be read here)";
const NO_SECRETS = { secretsOptional: true };
const COLUMNS = [
  "key_id",
  "account",
  "name",
  "rpm",
  "models",
  "tokens_per_minute",
  "budget",
  "created",
  "expires",
  "revoked",
] as const;

/** The terms that the options state. Throws a UsageError that names the option. */
function termsOf({ values }: CommandArguments, config: Config): NewKey {
  const { rpm, budget, models, "tokens-per-minute": tokens, account, name, expires } = values;
  const [amount, period] = budget?.split("/") ?? [];
  const json = {
    account,
    name,
    rpm: rpm && Number(rpm),
    budget: budget && { amount, period },
    tokens_per_minute: tokens && Number(tokens),
    models: models?.split(",").map((model) => model.trim()),
    expires,
  };
  try {
    return checkedTerms(json, config);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const { path, message } = error.issues[0]!;
    throw new UsageError(`--${String(path[0]).replaceAll("_", "-")}: ${message}`);
  }
}

async function create(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const { key, stored } = await createKey(config.data_dir, termsOf(args, config), Date.now());
  const { key_id: id, account } = stored;
  terminal.warn(
    `${id} of account ${account}: the key is shown this once, only its SHA-256 is kept`,
  );
  await terminal.printResult(args, { key, ...stored }, `${key}\n`);
}

async function list(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const created = readKeys(keyFile(config.data_dir)).map(listed);
  const configured = keysInConfig(config).map((key) =>
    isUnread(key) ? { ...key, key_id: null, name: IN_CONFIG_UNREAD } : { ...key, name: IN_CONFIG },
  );
  const keys = [...configured, ...created];
  const rows = keys.map(({ budget, ...key }) => ({
    ...key,
    budget: budget ? `${budget.amount}/${budget.period}` : null,
  }));
  await terminal.printResult(args, keys, table(COLUMNS, rows));
}

async function revoke(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const { operand: id } = args;
  if (isConfigured(config, id)) throw new Error(`${id} is in the configuration: remove it there`);
  const revoked = await revokeKey(config.data_dir, id, Date.now());
  if (!revoked) throw new Error(`there is no key ${id}; 'keys list' shows them`);
  const data = { key_id: revoked.key_id, revoked: revoked.revoked };
  await terminal.printResult(args, data, `${id} of account ${revoked.account} is revoked\n`);
}

export const COMMANDS: Readonly<Record<string, Command>> = {
  "keys create": {
    summary: "create a key, and show it this once",
    example: "keys create --account acme --name laptop --rpm 60 --models auto/chat",
    options: {
      account: { value: "A", help: "the account that pays for the key", required: true },
      name: {
        value: "N",
        help: "a name that `keys list` shows",
      },
      rpm: {
        value: "N",
        help: "requests per minute of the key, in addition to its account's limit",
        fallback: "no limit of its own",
        test: (text) => /^\d{1,7}$/.test(text) && Number(text) <= 1_000_000,
        expected: "a number of requests per minute, at most 1000000",
      },
      budget: {
        value: "AMOUNT/PERIOD",
        help:
          "what the key may spend in a day, a month or in total, " +
          "in addition to its account's budget",
        fallback: "no budget of its own",
        test: (text) => /^(0|[1-9]\d{0,8})(\.\d{1,12})?\/(day|month|total)$/.test(text),
        expected:
          "an amount and a period such as 5.00/day, 100/month or 20/total, " +
          "the amount below 1000000000",
      },
      "tokens-per-minute": {
        value: "N",
        help: "tokens per minute of the key, in addition to its account's limit",
        fallback: "no limit of its own",
        test: (text) => /^\d{1,10}$/.test(text) && Number(text) <= 1_000_000_000,
        expected: "a number of tokens per minute, at most 1000000000",
      },
      models: {
        value: "a,b",
        help: "the models and aliases that the key may use",
        fallback: "all",
      },
      expires: {
        value: "DATE",
        help: "when the key expires: a date such as 2027-01-31, or a time in ISO 8601",
        fallback: "never",
      },
      json: JSON_OPTION,
    },
    run: create,
  },
  "keys list": {
    summary: "all keys, by their ids",
    example: "keys list --json",
    options: { json: JSON_OPTION },
    run: list,
  },
  "keys revoke": {
    summary: "revoke a key: it is refused from now on",
    operand: "KEY_ID",
    operandHelp: "a key's id, as `keys list` shows it",
    example: "keys revoke key_0123456789abcdef",
    options: { json: JSON_OPTION },
    run: revoke,
  },
};
