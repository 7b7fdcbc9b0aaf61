// Tells the operator when half, four fifths and all of a budget are spent, each once in a period.
import type { Diagnose } from "../../core/diagnose.ts";
import { formatMoney } from "../../core/ledger/price.ts";
import type { Figures } from "./contracts.ts";

/** In per cent of the amount, highest first. */
const LEVELS = [100, 80, 50];

/** What was reported of a budget. */
interface Reported {
  /** The amount and the period of the budget. */
  readonly of: string;
  /** The highest level that was spent. */
  readonly level: number;
  /** Whether the level of 100 was reported, which a refusal reports before it is spent. */
  readonly isFull: boolean;
}

export interface BudgetWarnings {
  /**
   * How a budget stands, when it was asked for room and when a request was settled. `refused`: it
   * has just had no room for a request.
   */
  take(figures: Figures, refused: boolean): void;
}

export function createBudgetWarnings(diagnose: Diagnose): BudgetWarnings {
  const reported = new Map<string, Reported>();

  function report({ name, amount, ends, period, spent }: Figures, percent: number): void {
    diagnose({
      event: "budget_used",
      level: "warn",
      limit: name,
      percent,
      spent: formatMoney(spent),
      amount: formatMoney(amount),
      period,
      ends,
    });
  }

  /** What had been spent before this process looked was reported then. */
  function before(figures: Figures, of: string): Reported {
    const known = reported.get(figures.name);
    if (known?.of === of) return known;
    const level = known ? 0 : levelOf(figures);
    return { of, level, isFull: level === 100 };
  }

  return {
    take(figures, refused) {
      const { name, amount, ends, period } = figures;
      const of = `${amount} ${period} ${ends}`;
      const { level: known, isFull } = before(figures, of);
      const level = Math.max(known, levelOf(figures));
      const becomesFull = refused || level === 100;
      reported.set(name, { of, level, isFull: isFull || becomesFull });
      // One that was refused for being too large has told of a full budget that was not spent.
      if ((becomesFull && !isFull) || (level === 100 && known < 100)) report(figures, 100);
      else if (level > known && level < 100) report(figures, level);
    },
  };
}

const levelOf = ({ spent, amount }: Figures): number =>
  spent === 0n ? 0 : (LEVELS.find((level) => spent * 100n >= amount * BigInt(level)) ?? 0);
