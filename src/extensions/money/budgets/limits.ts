// The limits of accounts and keys, as gateway.json and keys.json state them.
import type { Warning } from "../../../config/extension.ts";
import { integer, nullable, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { configuredKeys, type Caller, type KeyTerms } from "../../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import type { Config } from "../../../core/config.ts";
import { fail, literal, nonEmpty, optional, refine } from "../../../core/schema/checker.ts";
import { createdKeysIn, isUnread } from "../../operations/keys/index.ts";
import { AMOUNT, parseMoney } from "../records/index.ts";
import type { Spender } from "./contracts.ts";
import { PERIODS, type Budget } from "./spend-counters.ts";

/** The largest budget, in whole units of the currency. The Redis script counts it exactly. */
const MAX_AMOUNT = 1_000_000_000;
const MAX_TOKENS_PER_MINUTE = 1_000_000_000;

const amount = refine(nonEmpty, (text) => {
  const isAmount = AMOUNT.test(text) && text.length < 30;
  if (isAmount && parseMoney(text) <= parseMoney(String(MAX_AMOUNT))) return text;
  const bounds = "at most twelve decimals, at most one thousand million";
  return fail("invalid_value", `expected an amount as text, such as "100.00": ${bounds}`);
});

/** Checks the setting `budget`. */
const budgetTerms = strict({ amount, period: literal(...PERIODS) });
const tokensPerMinute = optional(nullable(integer(0, MAX_TOKENS_PER_MINUTE)));

/** Defines the settings, which are the same for accounts and keys. */
const settingsOf = (rows: "accounts" | "keys") => ({
  /** Absent: any amount may be spent. */
  budget: defineSetting(`${rows}.*.budget`, undefined, () => budgetTerms),
  /** Tokens per minute; null: any number; 0: none. */
  tokens: defineSetting(`${rows}.*.tokens_per_minute`, null, () => tokensPerMinute),
});

/** The limits of an account, for all of its keys together. */
const ofAccounts = settingsOf("accounts");
/** The limits of one key, in addition to its account's. */
const ofKeys = settingsOf("keys");

export const limitSettings = [...Object.values(ofAccounts), ...Object.values(ofKeys)];

/** The budget of an account. Undefined: it may spend any amount. */
export function accountBudget(account: string, { accounts }: Config): Budget | undefined {
  const terms = ofAccounts.budget.of(accounts.get(account) ?? {});
  const name = accountLimitName(account);
  return terms && { name, account, keyId: null, ...terms, amount: parseMoney(terms.amount) };
}

/** The budget of a key of the configuration or keys.json. Undefined: it has none of its own. */
export function keyBudget({ key_id: keyId, account, ...row }: KeyTerms): Budget | undefined {
  const terms = ofKeys.budget.of(row);
  const name = keyLimitName(keyId);
  return terms && { name, account, keyId, ...terms, amount: parseMoney(terms.amount) };
}

/** The budgets of all accounts and keys in a configuration, by name. Undefined: it has none. */
export function budgetsIn(config: Config): Map<string, Budget | undefined> {
  const budgets = new Map<string, Budget | undefined>();
  for (const account of config.accounts.keys())
    budgets.set(accountLimitName(account), accountBudget(account, config));
  for (const terms of configuredKeys(config).values())
    budgets.set(keyLimitName(terms.key_id), keyBudget(terms));
  return budgets;
}

/** The budgets of all accounts and keys, created keys included, whose secrets can be read. */
export function allBudgets(config: Config): readonly Budget[] {
  // As in the keyring, a key of the configuration replaces a created key.
  const keys = new Map([...createdKeysIn(config.data_dir).byDigest, ...configuredKeys(config)]);
  const ofKeys = [...keys.values()].filter((key) => !isUnread(key)).map(keyBudget);
  const ofAccounts = [...config.accounts.keys()].map((name) => accountBudget(name, config));
  return [...ofAccounts, ...ofKeys].filter((budget) => budget !== undefined);
}

/** The account and the key of a caller, with their limits. */
export function spenderOf({ account, keyId, terms }: Caller, config: Config): Spender {
  const budgets = [accountBudget(account, config), keyBudget(terms)];
  const ofAccount = ofAccounts.tokens.of(config.accounts.get(account) ?? {});
  const windows = [
    { name: accountLimitName(account), limit: ofAccount ?? Infinity },
    { name: keyLimitName(keyId), limit: ofKeys.tokens.of(terms) ?? Infinity },
  ];
  return {
    account,
    key_id: keyId,
    budgets: budgets.filter((budget) => budget !== undefined),
    windows: windows.filter(({ limit }) => limit < Infinity),
  };
}

/** Warns of models without a price: requests to them cost nothing, so no budget limits them. */
export function unpricedModels(config: Config): Warning[] {
  if (allBudgets(config).length === 0) return [];
  return [...config.models]
    .filter(([, { price }]) => !price)
    .map(([name]) => ({
      path: ["models", name, "price"],
      message: "is missing: no budget limits this model (if it costs nothing, state prices of 0)",
    }));
}
