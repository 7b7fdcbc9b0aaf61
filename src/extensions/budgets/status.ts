// How the budgets stand, for people and for other programs: of the accounts and keys that have one.
import { keyIdOf } from "../../core/accounts/keyring.ts";
import { keyLimitName } from "../../core/accounts/limiter.ts";
import type { Config } from "../../core/config.ts";
import { formatMoney } from "../../core/ledger/price.ts";
import type { Figures } from "./contracts.ts";
import { accountLimit, accountOf } from "./limits.ts";
import type { Period } from "./periods.ts";
import { leftOf } from "./refusals.ts";
import { keyBudget } from "./settings.ts";

/** A budget, as GET /status and `budget show` have it. Amounts are exact decimals. */
export interface BudgetStatus {
  /** Null: it is the budget of a key. */
  readonly account: string | null;
  /** Null: it is the budget of an account. */
  readonly key_id: string | null;
  /** Of its amounts: three capital letters, such as USD. */
  readonly currency: string;
  /** When the budget is renewed. `total`: never. */
  readonly period: Period;
  /** What may be spent in one period. */
  readonly amount: string;
  /** What was spent in the current period. */
  readonly spent: string;
  /** For requests that run. */
  readonly held: string;
  /** Neither spent nor held. */
  readonly left: string;
  /** Null: never. */
  readonly ends: string | null;
}

export function printed(figures: Figures, currency: string): BudgetStatus {
  const { name, period, amount, spent, held, ends } = figures;
  const [kind = "", subject = ""] = splitAt(name, name.indexOf(" "));
  return {
    account: kind === "account" ? subject : null,
    key_id: kind === "key" ? subject : null,
    currency,
    period,
    amount: formatMoney(amount),
    spent: formatMoney(spent),
    held: formatMoney(held),
    left: formatMoney(leftOf(figures)),
    ends,
  };
}

const splitAt = (text: string, at: number) => [text.slice(0, at), text.slice(at + 1)];

/** What all processes have heard of the budgets, of each the latest. `now`: the wall clock. */
export function statusOf(
  reports: readonly (readonly Figures[] | undefined)[],
  config: Config,
  now = Date.now(),
): readonly BudgetStatus[] {
  const latest = new Map<string, Figures>();
  for (const figures of reports.flatMap((report) => report ?? [])) {
    const known = latest.get(figures.name);
    if (!known || known.at <= figures.at) latest.set(figures.name, figures);
  }
  return [...latest.values()]
    .filter((figures) => isInForce(figures, config))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((figures) =>
      printed(isOver(figures, now) ? { ...figures, spent: 0n } : figures, config.currency),
    );
}

/**
 * A reload may have taken the budget of an account away, or that of a key of the configuration. A
 * key that was made keeps its own.
 */
function isInForce({ name }: Figures, config: Config): boolean {
  const account = accountOf(name);
  if (account !== undefined) return accountLimit(account, config)?.budget !== undefined;
  return !unlimitedKeys(config).has(name);
}

/** The keys of a configuration that have no budget, by the names under which they spend. */
function unlimitedKeys(config: Config): ReadonlySet<string> {
  const known = unlimited.get(config);
  if (known) return known;
  const keys = config.keys.filter((key) => !keyBudget.of(key));
  const names = new Set(keys.map(({ digest }) => keyLimitName(keyIdOf(digest))));
  unlimited.set(config, names);
  return names;
}

/** They are worked out once: to hash 100,000 keys takes a while. */
const unlimited = new WeakMap<Config, ReadonlySet<string>>();

/** Nobody has asked since its period ended. */
const isOver = ({ ends }: Figures, now: number): boolean =>
  ends !== null && Date.parse(ends) <= now;
