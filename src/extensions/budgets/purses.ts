// What was spent, by account and by key, in the periods of this moment, and what is held of it for
// requests that run. Amounts are in pico-units of the currency.
import { PERIODS, periodName, type Period } from "./periods.ts";

/** One account or one key. */
interface Purse {
  spent: Record<Period, { name: string; sum: bigint }>;
  held: bigint;
}

/** What was spent under a name, in the periods of the moment. */
export type Spent = Readonly<Record<Period, bigint>>;

export interface Purses {
  /** What was spent under this name in the period of this moment. */
  spent(name: string, period: Period): bigint;
  /** What is held under this name for requests that run. 0 for a name that is not known. */
  held(name: string): bigint;
  /** Adds to what was spent, now. */
  spend(name: string, cost: bigint): void;
  /** Adds to what is held; less is held by a negative amount. */
  hold(name: string, amount: bigint): void;
  /** Adds what the books know of before. */
  addBefore(name: string, before: Partial<Spent>): void;
  /** Forgets what was spent, not what is held. */
  forgetSpent(): void;
}

/** `now` is the wall clock, in milliseconds since 1970. */
export function createPurses(now: () => number): Purses {
  const purses = new Map<string, Purse>();

  const emptySums = (): Purse["spent"] => ({
    day: { name: "", sum: 0n },
    month: { name: "", sum: 0n },
    total: { name: "", sum: 0n },
  });

  function purseOf(name: string): Purse {
    const known = purses.get(name);
    if (known) return known;
    const purse = { spent: emptySums(), held: 0n };
    purses.set(name, purse);
    return purse;
  }

  /**
   * The sum of the period of this moment. A clock that is set back does not renew a budget: the
   * sum of the later period stays until that is over.
   */
  function sumOf(purse: Purse, period: Period, time: number): { sum: bigint } {
    const current = purse.spent[period];
    const name = periodName(period, time);
    if (name > current.name) {
      current.name = name;
      current.sum = 0n;
    }
    return current;
  }

  return {
    spent(name, period) {
      const purse = purses.get(name);
      return purse ? sumOf(purse, period, now()).sum : 0n;
    },
    held: (name) => purses.get(name)?.held ?? 0n,
    spend(name, cost) {
      const time = now();
      const purse = purseOf(name);
      for (const period of PERIODS) sumOf(purse, period, time).sum += cost;
    },
    hold(name, amount) {
      purseOf(name).held += amount;
    },
    addBefore(name, before) {
      const time = now();
      const purse = purseOf(name);
      for (const period of PERIODS) sumOf(purse, period, time).sum += before[period] ?? 0n;
    },
    forgetSpent() {
      for (const purse of purses.values()) purse.spent = emptySums();
    },
  };
}
