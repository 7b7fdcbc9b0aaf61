// Keeps what each account and key has spent in the current periods, and what it holds for requests
// in progress. Periods are the day and the month in UTC, and all time. Amounts are in pico-units
// of the currency.
import { accountLimitName, keyLimitName } from "../../../core/accounts/limiter.ts";
import { dayOf } from "../records/index.ts";

export const PERIODS = ["day", "month", "total"] as const;

/** When a budget is renewed. `total`: never. */
export type Period = (typeof PERIODS)[number];

/** The account and the key that pay, by their names in usage records and the spend log. */
export interface Owner {
  /** The account of the request's key. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
}

/** What an account or a key may spend. */
export interface Budget {
  /** As accountLimitName() or keyLimitName() has it. */
  readonly name: string;
  /** The account, or that of the key. */
  readonly account: string;
  /** Null: it is the budget of all keys of the account together. */
  readonly keyId: string | null;
  /** What may be spent in one period. */
  readonly amount: bigint;
  /** When it is renewed. */
  readonly period: Period;
}

/** How a budget stands. */
export interface Figures extends Budget {
  /** What was spent in the current period. It may be more than `amount`. */
  readonly spent: bigint;
  /** Held for requests in progress. */
  readonly held: bigint;
  /** When the period ends, in ISO 8601. Null: never. */
  readonly ends: string | null;
}

/** An amount that an account and a key have spent. */
export interface Spent extends Owner {
  /** In pico-units of the currency. */
  readonly cost: bigint;
  /** The day in UTC, as the books have it: `2026-11-30`. Absent: now. */
  readonly day?: string;
}

export interface Purses {
  /** Counts an amount as spent. */
  spend(spent: Spent): void;
  /** Adds to the amount held. A negative amount releases. */
  hold(owner: Owner, amount: bigint): void;
  /** How a budget stands at this moment. */
  figures(budget: Budget): Figures;
}

/** One account or one key. */
interface Purse {
  /**
   * The latest day on which something was spent or asked: a clock that is set back does not renew a
   * budget.
   */
  day: string;
  /** What was spent in the periods that this day is in. */
  readonly spent: Record<Period, bigint>;
  held: bigint;
}

/** Names the period that a day is in: `2026-11-30`, `2026-11`, `total`. */
const periodOf = (period: Period, day: string): string =>
  period === "total" ? period : day.slice(0, period === "day" ? 10 : 7);

/** Names the period that a moment is in, in milliseconds since 1970. */
export const periodName = (period: Period, now: number): string => periodOf(period, dayOf(now));

/** As Figures.ends, of the period that a day is in. */
function periodEnd(period: Period, day: string): string | null {
  if (period === "total") return null;
  const end = new Date(day);
  if (period === "day") end.setUTCDate(end.getUTCDate() + 1);
  else end.setUTCMonth(end.getUTCMonth() + 1, 1);
  return end.toISOString();
}

/** `now` is the wall clock, in milliseconds since 1970. */
export function createPurses(now: () => number): Purses {
  const purses = new Map<string, Purse>();

  /** A purse whose periods are those of a day, or later ones. */
  function purseOn(day: string, name: string): Purse {
    const empty = { day, spent: { day: 0n, month: 0n, total: 0n }, held: 0n };
    const purse = purses.get(name) ?? empty;
    purses.set(name, purse);
    if (day <= purse.day) return purse;
    for (const period of PERIODS)
      if (periodOf(period, day) !== periodOf(period, purse.day)) purse.spent[period] = 0n;
    purse.day = day;
    return purse;
  }

  const pursesOf = ({ account, key_id }: Owner, day = dayOf(now())): readonly Purse[] => [
    purseOn(day, accountLimitName(account)),
    purseOn(day, keyLimitName(key_id)),
  ];

  return {
    spend({ cost, day, ...owner }) {
      for (const purse of pursesOf(owner, day))
        for (const period of PERIODS) {
          const isOver = periodOf(period, day ?? purse.day) < periodOf(period, purse.day);
          if (!isOver) purse.spent[period] += cost;
        }
    },
    hold(owner, amount) {
      for (const purse of pursesOf(owner)) purse.held += amount;
    },
    figures(budget) {
      const { day, spent, held } = purseOn(dayOf(now()), budget.name);
      const { period } = budget;
      return { ...budget, spent: spent[period], held, ends: periodEnd(period, day) };
    },
  };
}
