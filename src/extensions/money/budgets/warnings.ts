// Warns the operator when 50, 80 and 100 % of a budget are spent, each once per period.
import type { Diagnose } from "../../../core/diagnose.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures } from "./spend-counters.ts";

/** In percent of the amount, highest first. */
const LEVELS = [100, 80, 50];

/** What the operator knows of a budget. */
interface Reported {
  /** The amount of the budget, its period, and when that ends. */
  readonly terms: string;
  /** The highest level that was reached. */
  readonly level: number;
}

/** Returns a function to be called with the figures of a budget when they are read or changed. */
export function createWarnings(diagnose: Diagnose): (figures: Figures) => void {
  const reported = new Map<string, Reported>();

  return (figures) => {
    const { name, amount, ends, period } = figures;
    const terms = `${amount} ${period} ${ends}`;
    const level = levelOf(figures);
    // An earlier process has reported the levels that were reached before the first call.
    const last = reported.get(name) ?? { terms, level };
    const lastLevel = last.terms === terms ? last.level : 0;
    reported.set(name, { terms, level: Math.max(lastLevel, level) });
    if (level <= lastLevel) return;
    const amounts = { spent: formatMoney(figures.spent), amount: formatMoney(amount) };
    const fields = { limit: name, percent: level, ...amounts, period, ends };
    diagnose({ event: "budget_used", level: "warn", ...fields });
  };
}

/** The highest level that is reached. 0: none is. */
const levelOf = ({ spent, amount }: Figures): number =>
  spent === 0n ? 0 : (LEVELS.find((level) => spent * 100n >= amount * BigInt(level)) ?? 0);
