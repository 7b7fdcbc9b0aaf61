// The limits of accounts and keys, as a configuration and keys.json state them.
import { keyIdOf } from "../../../core/accounts/keyring.ts";
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import type { Config } from "../../../core/config.ts";
import { parseMoney } from "../records/index.ts";
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

/** Of one configuration: its limits, and the names under which all of its keys spend. */
interface Stated {
  readonly limits: readonly SpendLimit[];
  readonly keys: ReadonlySet<string>;
}

/** They are worked out once: to hash 100,000 keys takes a while. */
const stated = new WeakMap<Config, Stated>();

function statedIn(config: Config): Stated {
  const known = stated.get(config);
  if (known) return known;
  const keys = config.keys.map((terms) => ({ terms, keyId: keyIdOf(terms.digest) }));
  const limits = [
    ...[...config.accounts.keys()].map((account) => accountLimit(account, config)),
    ...keys.map(({ terms, keyId }) => keyLimit(keyId, terms)),
  ].filter((limit) => limit !== undefined);
  const found = { limits, keys: new Set(keys.map(({ keyId }) => keyLimitName(keyId))) };
  stated.set(config, found);
  return found;
}

/** All limits that stand in a configuration. */
export const limitsIn = (config: Config): readonly SpendLimit[] => statedIn(config).limits;

/** The limits in a configuration, and those of created keys among others, by their names. */
export function limitsShown(
  config: Config,
  others: ReadonlyMap<string, SpendLimit>,
): readonly SpendLimit[] {
  const { limits, keys } = statedIn(config);
  const created = [...others.values()].filter(
    ({ name }) => accountOf(name) === undefined && !keys.has(name),
  );
  return [...limits, ...created];
}
