// Warns the operator when 50, 80 and 100 % of a budget are spent, each once per period.
import type { Diagnose } from "../../../core/diagnose.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures } from "./spend-counters.ts";

/** In percent of the amount, highest first. */
const LEVELS = [100, 80, 50];

/** What the operator knows of a budget. */
interface Reported extends Pick<Figures, "amount" | "period" | "ends"> {
  /** The highest level that was reached. */
  readonly level: number;
}

/** Returns a function to be called with the figures of a budget when they are read or changed. */
export function createWarnings(diagnose: Diagnose): (figures: Figures) => void {
  const reported = new Map<string, Reported>();

  return (figures) => {
    const { name, amount, ends, period } = figures;
    const level = levelOf(figures);
    const last = reported.get(name);
    const isSame = last?.amount === amount && last.period === period && last.ends === ends;
    if (isSame && level <= last.level) return;
    reported.set(name, { amount, period, ends, level });
    // An earlier process has reported the levels that were reached before the first call.
    if (!last || level === 0) return;
    const amounts = { spent: formatMoney(figures.spent), amount: formatMoney(amount) };
    const fields = { limit: name, percent: level, ...amounts, period, ends };
    diagnose({ event: "budget_used", level: "warn", ...fields });
  };
}

/** The highest level that is reached. 0: none is. */
function levelOf({ spent, amount }: Figures): number {
  // Any cost is more than all of an amount of 0.
  const percent = Number((spent * 100n) / (amount || 1n));
  return LEVELS.find((level) => percent >= level) ?? 0;
}
