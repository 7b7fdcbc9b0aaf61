// The limits of accounts and keys, as gateway.json and keys.json state them.
import { integer, nullable, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { configuredKeys, type KeyTerms } from "../../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import type { Config } from "../../../core/config.ts";
import { fail, literal, nonEmpty, optional, refine } from "../../../core/schema/checker.ts";
import { AMOUNT, parseMoney } from "../records/index.ts";
import { PERIODS, type LimitOwner, type Period, type SpendLimit } from "./purses.ts";

/** What an account or a key may spend. */
interface Budget {
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
  budget: defineSetting<Budget | undefined>(`${rows}.*.budget`, undefined, () =>
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

/** `row`: that of the account in the configuration, or that of the key there or in keys.json. */
function limitOf(whose: LimitOwner, row: object, settings: typeof ofKeys): SpendLimit | undefined {
  const budget = settings.budget.of(row);
  const tokensPerMinute = settings.tokens.of(row) ?? null;
  if (!budget && tokensPerMinute === null) return undefined;
  return {
    ...whose,
    budget: budget && { amount: parseMoney(budget.amount), period: budget.period },
    tokensPerMinute,
  };
}

/** Undefined: the account may spend any amount, and any number of tokens. */
export const accountLimit = (account: string, { accounts }: Config): SpendLimit | undefined =>
  limitOf(
    { name: accountLimitName(account), account, keyId: null },
    accounts.get(account) ?? {},
    ofAccounts,
  );

/** Undefined: as above. */
export const keyLimit = (terms: KeyTerms): SpendLimit | undefined =>
  limitOf(
    { name: keyLimitName(terms.key_id), account: terms.account, keyId: terms.key_id },
    terms,
    ofKeys,
  );

/** Of all accounts and keys in a configuration, by their names. Undefined: as above. */
export const limitsIn = (config: Config): ReadonlyMap<string, SpendLimit | undefined> =>
  new Map([
    ...Array.from(
      config.accounts.keys(),
      (account) => [accountLimitName(account), accountLimit(account, config)] as const,
    ),
    ...Array.from(
      configuredKeys(config).values(),
      (terms) => [keyLimitName(terms.key_id), keyLimit(terms)] as const,
    ),
  ]);
