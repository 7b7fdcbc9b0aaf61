// Budgets in gateway.json: of an account, and of a single key.
import { integer, nullable, strict } from "../../../config/fields.ts";
import { defineSetting, type Setting } from "../../../config/setting.ts";
import { AMOUNT, parseMoney } from "../records/index.ts";
import { fail, literal, nonEmpty, optional, refine } from "../../../core/schema/checker.ts";
import { PERIODS, type Period } from "../spent/index.ts";

/** What an account or a key may spend. */
export interface Budget {
  /** An exact decimal number, in `currency`. */
  readonly amount: string;
  /** When it is renewed: at midnight in UTC, at that of a month's first day, or never (`total`). */
  readonly period: Period;
}

/** The largest amount of a budget, in whole units of the currency: Redis counts that exactly. */
const MAX_AMOUNT = 1_000_000_000;
const MAX_TOKENS_PER_MINUTE = 1_000_000_000;

/** Whether a text is an amount of money that a budget can have. */
export const isAmount = (text: string): boolean =>
  AMOUNT.test(text) && text.length < 30 && parseMoney(text) <= parseMoney(String(MAX_AMOUNT));

export const AMOUNT_EXPECTED =
  'an amount as text, such as "100.00": at most twelve decimals, at most one thousand million';

const amount = refine(nonEmpty, (text) =>
  isAmount(text) ? text : fail("invalid_value", `expected ${AMOUNT_EXPECTED}`),
);

const budgetAt = (path: string): Setting<Budget | undefined> =>
  defineSetting<Budget | undefined>(path, undefined, () =>
    optional(strict({ amount, period: literal(...PERIODS) })),
  );

const tokensAt = (path: string): Setting<number | null | undefined> =>
  defineSetting<number | null | undefined>(path, null, () =>
    optional(nullable(integer(0, MAX_TOKENS_PER_MINUTE))),
  );

/** Of all keys of the account together. Absent: the account may spend any amount. */
export const accountBudget = budgetAt("accounts.*.budget");
/** Tokens per minute of all keys of the account together; null: any number; 0: none. */
export const accountTokens = tokensAt("accounts.*.tokens_per_minute");
/** Of one key, beside its account's. Absent: only the account's. */
export const keyBudget = budgetAt("keys.*.budget");
/** Tokens per minute of one key; null: only the account's limit. */
export const keyTokens = tokensAt("keys.*.tokens_per_minute");
