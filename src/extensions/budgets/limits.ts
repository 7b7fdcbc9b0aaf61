// The limits of accounts and keys, as a configuration and keys.json state them.
import { keyIdOf } from "../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../core/accounts/limiter.ts";
import type { Config } from "../../core/config.ts";
import { parseMoney } from "../usage-records/index.ts";
import type { SpendLimit } from "./contracts.ts";
import { accountBudget, accountTokens, keyBudget, keyTokens, type Budget } from "./settings.ts";

/** Undefined: the account may spend any amount, and any number of tokens. */
export function accountLimit(account: string, { accounts }: Config): SpendLimit | undefined {
  const settings = accounts.get(account);
  if (!settings) return undefined;
  return limitOf(accountLimitName(account), accountBudget.of(settings), accountTokens.of(settings));
}

/** `terms` are a row of `keys` in the configuration, or of keys.json. Undefined: as above. */
export const keyLimit = (keyId: string, terms: object): SpendLimit | undefined =>
  limitOf(keyLimitName(keyId), keyBudget.of(terms), keyTokens.of(terms));

function limitOf(
  name: string,
  budget: Budget | null | undefined,
  tokensPerMinute: number | null = null,
): SpendLimit | undefined {
  if (!budget && tokensPerMinute === null) return undefined;
  return {
    name,
    budget: budget ? { amount: parseMoney(budget.amount), period: budget.period } : undefined,
    tokensPerMinute,
  };
}

/** The account of the limit of an account, by its name. Undefined: it is that of a key. */
export function accountOf(name: string): string | undefined {
  const prefix = accountLimitName("");
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}

/** All limits that stand in a configuration. */
export function limitsIn(config: Config): readonly SpendLimit[] {
  const all = [
    ...[...config.accounts.keys()].map((account) => accountLimit(account, config)),
    ...config.keys.map((key) => keyLimit(keyIdOf(key.digest), key)),
  ];
  return all.filter((limit) => limit !== undefined);
}
