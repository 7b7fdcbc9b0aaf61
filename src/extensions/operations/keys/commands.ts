// The commands `keys create`, `keys list` and `keys revoke`.
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { table } from "../../../command-line/table.ts";
import { createKey, keyFile, readKeys, revokeKey } from "./created-keys.ts";
import { budgetIn, isDateToCome, isShownText, keysInConfig, SHOWN_TEXT } from "./terms.ts";

/** The name of a key that has none: where it stands. */
const IN_CONFIG = "(in the configuration)";
const NO_SECRETS = { withoutSecrets: true };
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

async function create(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { account = "", name = null, rpm, models, expires, budget } = args.values;
  const tokens = args.values["tokens-per-minute"];
  const { config } = await terminal.load(args, NO_SECRETS);
  const names = models?.split(",").map((model) => model.trim()) ?? null;
  const unknown = names?.find((model) => !config.models.has(model) && !config.aliases.has(model));
  if (unknown !== undefined)
    throw new UsageError(`--models: there is no model or alias named '${unknown}'`);
  const terms = {
    account,
    name,
    rpm: rpm === undefined ? null : Number(rpm),
    models: names,
    budget: budget === undefined ? undefined : budgetIn(budget),
    tokens_per_minute: tokens === undefined ? undefined : Number(tokens),
    expires: expires === undefined ? null : new Date(expires).toISOString(),
  };
  const { key, stored } = await createKey(config.data_dir, terms, Date.now());
  terminal.warn(
    `${stored.key_id} of account ${account}: the key is shown this once, only its SHA-256 is kept`,
  );
  await terminal.answer(args, { key, ...stored }, `${key}\n`);
}

async function list(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const created = readKeys(keyFile(config.data_dir)).map(({ sha256: _, ...key }) => key);
  const configured = keysInConfig(config).map((key) => ({ ...key, name: IN_CONFIG }));
  const keys = [...configured, ...created];
  const rows = keys.map(({ budget, ...key }) => ({
    tokens_per_minute: null,
    ...key,
    budget: budget ? `${budget.amount}/${budget.period}` : null,
  }));
  await terminal.answer(args, keys, table(COLUMNS, rows));
}

async function revoke(args: CommandArguments, terminal: Terminal): Promise<void> {
  const { config } = await terminal.load(args, NO_SECRETS);
  const { operand: id } = args;
  const revoked = await revokeKey(config.data_dir, id, Date.now());
  if (!revoked) {
    const isConfigured = keysInConfig(config).some(({ key_id }) => key_id === id);
    throw new Error(
      isConfigured
        ? `${id} stands in the configuration: take it out there`
        : `there is no key ${id}; 'keys list' shows them`,
    );
  }
  const data = { key_id: revoked.key_id, revoked: revoked.revoked };
  await terminal.answer(args, data, `${id} of account ${revoked.account} is revoked\n`);
}

export const COMMANDS: Readonly<Record<string, Command>> = {
  "keys create": {
    summary: "make a key; it is shown this once",
    example: "keys create --account acme --name laptop --rpm 60 --models auto/chat",
    options: {
      account: { value: "A", meaning: "the account that pays for the key", required: true },
      name: {
        value: "N",
        meaning: "a name that `keys list` shows",
        test: isShownText,
        expected: SHOWN_TEXT,
      },
      rpm: {
        value: "N",
        meaning: "requests per minute of the key, beside its account's limit",
        fallback: "no limit of its own",
        test: (text) => /^\d{1,7}$/.test(text),
        expected: "a number of requests per minute",
      },
      budget: {
        value: "AMOUNT/PERIOD",
        meaning:
          "what the key may spend in a day, a month or in total, beside its account's budget",
        fallback: "no budget of its own",
        test: (text) => budgetIn(text) !== undefined,
        expected: "an amount and a period such as 5.00/day, 100/month or 20/total",
      },
      "tokens-per-minute": {
        value: "N",
        meaning: "tokens per minute of the key, beside its account's limit",
        fallback: "no limit of its own",
        test: (text) => /^\d{1,9}$/.test(text),
        expected: "a number of tokens per minute",
      },
      models: {
        value: "a,b",
        meaning: "the models and aliases that the key may use",
        fallback: "all",
      },
      expires: {
        value: "DATE",
        meaning: "when the key ends: a date such as 2027-01-31, or a time in ISO 8601",
        fallback: "never",
        test: isDateToCome,
        expected: "a date to come such as 2027-01-31, or a time in ISO 8601",
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
    summary: "refuse a key from now on",
    operand: "KEY_ID",
    operandMeaning: "a key's id, as `keys list` shows it",
    example: "keys revoke key_0123456789abcdef",
    options: { json: JSON_OPTION },
    run: revoke,
  },
};
