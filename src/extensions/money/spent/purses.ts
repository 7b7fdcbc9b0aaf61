// What was spent, by account and by key, in the periods of this moment, and what is held of it for
// requests that run. Amounts are in pico-units of the currency.
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import { dayOf } from "../records/index.ts";
import { PERIODS, periodEnd, periodOf, type Period } from "./periods.ts";

/** Whose money it is, by the names that usage records and the spend log have. */
export interface Owner {
  /** The account of the request's key. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
}

/** A limit that may be a budget. */
export interface BudgetLimit {
  /** As accountLimitName() or keyLimitName() has it. */
  readonly name: string;
  /** Undefined: it bounds no costs. */
  readonly budget: { readonly amount: bigint; readonly period: Period } | undefined;
}

/** How a budget stands. Amounts are in pico-units of the currency. */
export interface Figures {
  /** As BudgetLimit.name. */
  readonly name: string;
  /** When the budget is renewed. `total`: never. */
  readonly period: Period;
  /** What may be spent in one period. */
  readonly amount: bigint;
  /** What was spent in the current period. It may be more than `amount`. */
  readonly spent: bigint;
  /** For requests that run. */
  readonly held: bigint;
  /** When the period ends, in ISO 8601. Null: never. */
  readonly ends: string | null;
}

/** What somebody has spent on one day. */
export interface Spent extends Owner {
  /** `2026-11-30`, in UTC. */
  readonly day: string;
  readonly cost: bigint;
}

export interface Purses {
  /** Counts what is spent now. */
  spend(owner: Owner, cost: bigint): void;
  /** Adds to what is held; less is held by a negative amount. */
  hold(owner: Owner, amount: bigint): void;
  /** Adds what was spent before: days in any order. */
  addBefore(spent: readonly Spent[]): void;
  /** How those of the limits stand that are budgets. */
  figures(limits: readonly BudgetLimit[]): readonly Figures[];
}

/** One account or one key. */
interface Purse {
  readonly spent: Readonly<Record<Period, { name: string; sum: bigint }>>;
  held: bigint;
}

/** `now` is the wall clock, in milliseconds since 1970. */
export function createPurses(now: () => number): Purses {
  const purses = new Map<string, Purse>();

  function purseOf(name: string): Purse {
    const known = purses.get(name);
    if (known) return known;
    const empty = () => ({ name: "", sum: 0n });
    const purse = { spent: { day: empty(), month: empty(), total: empty() }, held: 0n };
    purses.set(name, purse);
    return purse;
  }

  const pursesOf = ({ account, key_id }: Owner): readonly Purse[] => [
    purseOf(accountLimitName(account)),
    purseOf(keyLimitName(key_id)),
  ];

  /**
   * The sum of the period of a day, or of a later one if there is one already: a clock that is set
   * back does not renew a budget.
   */
  function sumOf({ spent }: Purse, period: Period, day: string) {
    const current = spent[period];
    const name = periodOf(period, day);
    if (name > current.name) {
      current.name = name;
      current.sum = 0n;
    }
    return current;
  }

  return {
    spend(owner, cost) {
      const today = dayOf(now());
      for (const purse of pursesOf(owner))
        for (const period of PERIODS) sumOf(purse, period, today).sum += cost;
    },
    hold(owner, amount) {
      for (const purse of pursesOf(owner)) purse.held += amount;
    },
    addBefore(spent) {
      for (const { cost, day, ...owner } of spent)
        for (const purse of pursesOf(owner))
          for (const period of PERIODS) {
            const sum = sumOf(purse, period, day);
            if (sum.name === periodOf(period, day)) sum.sum += cost;
          }
    },
    figures: (limits) =>
      limits.flatMap(({ name, budget }) => {
        if (!budget) return [];
        const purse = purseOf(name);
        const spent = sumOf(purse, budget.period, dayOf(now())).sum;
        const ends = periodEnd(budget.period, now());
        return [{ name, ...budget, spent, held: purse.held, ends }];
      }),
  };
}
