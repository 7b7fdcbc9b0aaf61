// How budgets stand by the purses of this process.
import type { Clock } from "../../core/clock.ts";
import type { Figures, SpendLimit } from "./contracts.ts";
import { periodEnd } from "./periods.ts";
import type { Purses } from "./purses.ts";

/** Figures of one millisecond are told apart by this much. */
const STEP_MS = 0.001;

export interface Standing {
  /** Of those of the limits that are budgets. */
  of(limits: readonly SpendLimit[]): readonly Figures[];
  /** Of all that were asked about. */
  known(): readonly Figures[];
}

export function createStanding(purses: Purses, clock: Clock): Standing {
  let at = 0;
  const seen = new Map<string, NonNullable<SpendLimit["budget"]>>();

  function figuresOf(name: string, { period, amount }: NonNullable<SpendLimit["budget"]>): Figures {
    const now = clock.now();
    at = Math.max(now, at + STEP_MS);
    return {
      name,
      period,
      amount,
      spent: purses.spent(name, period),
      held: purses.held(name),
      ends: periodEnd(period, now),
      at,
    };
  }

  return {
    of: (limits) =>
      limits.flatMap(({ name, budget }) => {
        if (!budget) return [];
        seen.set(name, budget);
        return [figuresOf(name, budget)];
      }),
    known: () => [...seen].map(([name, budget]) => figuresOf(name, budget)),
  };
}
