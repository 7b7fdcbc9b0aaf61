// The limits of accounts and keys, as gateway.json and keys.json state them.
import { integer, nullable, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { configuredKeys, type Caller, type KeyTerms } from "../../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import type { Config } from "../../../core/config.ts";
import { fail, literal, nonEmpty, optional, refine } from "../../../core/schema/checker.ts";
import { AMOUNT, parseMoney } from "../records/index.ts";
import type { Spender } from "./contracts.ts";
import { PERIODS, type Budget, type Period } from "./purses.ts";

/** What an account or a key may spend, as it is written. */
interface BudgetTerms {
  /** An exact decimal number, in `currency`. */
  readonly amount: string;
  /** When it is renewed: at midnight in UTC, at that of a month's first day, or never (`total`). */
  readonly period: Period;
}

/** The largest amount of a budget, in whole units of the currency: Redis counts that exactly. */
const MAX_AMOUNT = 1_000_000_000;
const MAX_TOKENS_PER_MINUTE = 1_000_000_000;

const amount = refine(nonEmpty, (text) => {
  const isAmount = AMOUNT.test(text) && text.length < 30;
  if (isAmount && parseMoney(text) <= parseMoney(String(MAX_AMOUNT))) return text;
  const bounds = "at most twelve decimals, at most one thousand million";
  return fail("invalid_value", `expected an amount as text, such as "100.00": ${bounds}`);
});

/** Accounts and keys have the same settings. */
const settingsOf = (rows: "accounts" | "keys") => ({
  /** Absent: any amount may be spent. */
  budget: defineSetting<BudgetTerms | undefined>(`${rows}.*.budget`, undefined, () =>
    optional(strict({ amount, period: literal(...PERIODS) })),
  ),
  /** Tokens per minute; null: any number; 0: none. */
  tokens: defineSetting<number | null | undefined>(`${rows}.*.tokens_per_minute`, null, () =>
    optional(nullable(integer(0, MAX_TOKENS_PER_MINUTE))),
  ),
});

/** Of all keys of an account together. */
const ofAccounts = settingsOf("accounts");
/** Of one key, beside its account's. */
const ofKeys = settingsOf("keys");

export const limitSettings = [...Object.values(ofAccounts), ...Object.values(ofKeys)];

/** The account's, in this configuration. Undefined: it may spend any amount. */
export const accountBudget = (account: string, { accounts }: Config): Budget | undefined =>
  budgetOf(
    { name: accountLimitName(account), account, keyId: null },
    ofAccounts.budget.of(accounts.get(account) ?? {}),
  );

/** The key's, by its row in the configuration or in keys.json. Undefined: as above. */
export const keyBudget = (terms: KeyTerms): Budget | undefined =>
  budgetOf(
    { name: keyLimitName(terms.key_id), account: terms.account, keyId: terms.key_id },
    ofKeys.budget.of(terms),
  );

const budgetOf = (
  whose: Pick<Budget, "name" | "account" | "keyId">,
  terms: BudgetTerms | undefined,
): Budget | undefined =>
  terms && { ...whose, amount: parseMoney(terms.amount), period: terms.period };

/** Of all accounts and keys in a configuration, by their names. Undefined: as above. */
export function budgetsIn(config: Config): ReadonlyMap<string, Budget | undefined> {
  const budgets = new Map<string, Budget | undefined>();
  for (const account of config.accounts.keys())
    budgets.set(accountLimitName(account), accountBudget(account, config));
  for (const terms of configuredKeys(config).values())
    budgets.set(keyLimitName(terms.key_id), keyBudget(terms));
  return budgets;
}

/** Whose money a caller spends, and what bounds that. */
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
