// Counts in memory what each account and key has spent in the current periods, and what is held for
// its running requests. Periods are the day and the month in UTC, and all time. Amounts are in
// pico-units of the currency.
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import { dayAfter, dayOf } from "../records/index.ts";

export const PERIODS = ["day", "month", "total"] as const;

/** How often a budget is renewed. `total`: never. */
export type Period = (typeof PERIODS)[number];

/** The account and the key that pay for a request, with the names that usage records have. */
export interface Owner {
  /** As Caller.account. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
}

/** What an account or a key may spend. */
export interface Budget {
  /** The result of accountLimitName() or keyLimitName(). */
  readonly name: string;
  /** The account of the budget, or of its key. */
  readonly account: string;
  /** The key. Null: it is the budget of an account, for all of its keys together. */
  readonly keyId: string | null;
  /** How much may be spent in one period. */
  readonly amount: bigint;
  /** How often it is renewed. */
  readonly period: Period;
}

/** A budget with what is spent and held of it. */
export interface Figures extends Budget {
  /** How much was spent in the current period. It may be more than `amount`. */
  readonly spent: bigint;
  /** How much is held for running requests. */
  readonly held: bigint;
  /** When the period ends, in ISO 8601. Null: never. */
  readonly ends: string | null;
}

/** An amount that an account and a key have spent. */
export interface Spent extends Owner {
  /** In pico-units of the currency. */
  readonly cost: bigint;
  /** The day in UTC on which it counts: `2026-11-30`. Empty: one before the month. */
  readonly day: string;
}

export interface SpendCounters {
  /** Counts an amount as spent. */
  spend(spent: Spent): void;
  /** Adds to the amount held. A negative amount releases a hold. */
  hold(owner: Owner, amount: bigint): void;
  /** What is spent and held of a budget at this moment. */
  figures(budget: Budget): Figures;
}

/** The counters of one account or one key. */
interface OwnerCounters {
  /** The latest day of a call. It never goes back: a clock that is set back renews no budget. */
  day: string;
  /** How much was spent in the periods that include this day. */
  readonly spent: Record<Period, bigint>;
  /** How much is held for running requests. */
  held: bigint;
}

/** Names the period that includes a day: `2026-11-30`, `2026-11`, `total`. */
const periodOf = (period: Period, day: string): string =>
  period === "total" ? period : day.slice(0, period === "day" ? 10 : 7);

/** Names the period that includes `now`, in milliseconds since 1970. */
export const periodName = (period: Period, now: number): string => periodOf(period, dayOf(now));

/** Returns Figures.ends of each period that includes a date, such as 2026-11-30. */
function endsOf(date: string) {
  const month = new Date(date);
  month.setUTCMonth(month.getUTCMonth() + 1, 1);
  return { date, day: `${dayAfter(date)}T00:00:00.000Z`, month: month.toISOString(), total: null };
}

/** `now` is the wall clock, in milliseconds since 1970. */
export function createSpendCounters(now: () => number): SpendCounters {
  const byName = new Map<string, OwnerCounters>();
  /** Each request asks for figures, so the ends are kept until the day is another. */
  let ends = endsOf(dayOf(now()));

  /** Returns the counters of a name, and resets those of periods that ended before `day`. */
  function countersOn(day: string, name: string): OwnerCounters {
    const found = byName.get(name) ?? { day, spent: { day: 0n, month: 0n, total: 0n }, held: 0n };
    byName.set(name, found);
    if (day <= found.day) return found;
    for (const period of PERIODS)
      if (periodOf(period, day) !== periodOf(period, found.day)) found.spent[period] = 0n;
    found.day = day;
    return found;
  }

  const countersOf = ({ account, key_id }: Owner, day = dayOf(now())): readonly OwnerCounters[] => [
    countersOn(day, accountLimitName(account)),
    countersOn(day, keyLimitName(key_id)),
  ];

  return {
    spend({ cost, day, ...owner }) {
      // After the clock was set back, today is before the latest day, and counts in it.
      const isToday = day === dayOf(now());
      for (const each of countersOf(owner, day))
        for (const period of PERIODS)
          if (isToday || periodOf(period, day) >= periodOf(period, each.day))
            each.spent[period] += cost;
    },
    hold(owner, amount) {
      for (const each of countersOf(owner)) each.held += amount;
    },
    figures(budget) {
      const { day, spent, held } = countersOn(dayOf(now()), budget.name);
      if (ends.date !== day) ends = endsOf(day);
      // Node 20 takes thirty times as long if the members come after the spread object.
      return { spent: spent[budget.period], held, ends: ends[budget.period], ...budget };
    },
  };
}
