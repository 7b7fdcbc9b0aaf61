// Tells the operator when half, four fifths and all of a budget are spent, each once in a period.
import type { Diagnose } from "../../../core/diagnose.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures } from "./purses.ts";

/** In per cent of the amount, highest first. */
const LEVELS = [100, 80, 50];

/** What was reported of a budget. */
interface Reported {
  /** The amount and the period of the budget. */
  readonly of: string;
  /** The highest level that was spent. */
  readonly level: number;
}

/** Returns a function to call with the figures of a budget after each reading or change. */
export function createWarnings(diagnose: Diagnose): (figures: Figures) => void {
  const reported = new Map<string, Reported>();

  return (figures) => {
    const { name, amount, ends, period } = figures;
    const of = `${amount} ${period} ${ends}`;
    const known = reported.get(name);
    const percent = levelOf(figures);
    const isSame = known?.of === of;
    // Levels that were reached before the first reading were reported at that time.
    const before = known && !isSame ? 0 : (known?.level ?? percent);
    reported.set(name, { of, level: Math.max(before, percent) });
    if (percent <= before) return;
    const spent = formatMoney(figures.spent);
    const terms = { amount: formatMoney(amount), period, ends };
    diagnose({ event: "budget_used", level: "warn", limit: name, percent, spent, ...terms });
  };
}

const levelOf = ({ spent, amount }: Figures): number =>
  spent === 0n ? 0 : (LEVELS.find((level) => spent * 100n >= amount * BigInt(level)) ?? 0);
