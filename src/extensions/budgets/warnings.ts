// Tells the operator when half, four fifths and all of a budget are spent, each once in a period.
import type { Diagnose } from "../../core/diagnose.ts";
import { formatMoney } from "../../core/ledger/price.ts";
import type { Figures } from "./contracts.ts";

/** In per cent of the amount, highest first. */
const LEVELS = [100, 80, 50];

/** What was reported last of a budget. */
interface Reported {
  /** The amount and the period of the budget. */
  readonly of: string;
  readonly level: number;
}

export interface BudgetWarnings {
  /** How a budget stands. `refused`: it has just had no room for a request. */
  take(figures: Figures, refused: boolean): void;
}

export function createBudgetWarnings(diagnose: Diagnose): BudgetWarnings {
  const reported = new Map<string, Reported>();

  return {
    take(figures, refused) {
      const { name, amount, ends, period, spent } = figures;
      const of = `${amount} ${period} ${ends}`;
      const known = reported.get(name);
      const level = refused ? 100 : levelOf(figures);
      // What had been spent before this process looked was reported then.
      const before = known ? levelBefore(known, of) : levelOf(figures);
      reported.set(name, { of, level: Math.max(level, before) });
      if (level <= before) return;
      diagnose({
        event: "budget_used",
        level: "warn",
        limit: name,
        percent: level,
        spent: formatMoney(spent),
        amount: formatMoney(amount),
        period,
        ends,
      });
    },
  };
}

const levelBefore = (known: Reported, of: string): number => (known.of === of ? known.level : 0);

const levelOf = ({ spent, amount }: Figures): number =>
  LEVELS.find((level) => spent * 100n >= amount * BigInt(level)) ?? 0;
