// Formats the figures of budgets for GET /status and the command `budget show`.
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures } from "./spend-counters.ts";

/** A budget as it is printed. Amounts are exact decimals. */
export function printedFigures(figures: Figures, currency: string) {
  const { account, keyId, period, amount, spent, held, ends } = figures;
  const left = amount - spent - held;
  return {
    /** The account. Null: it is the budget of a key. */
    account: keyId === null ? account : null,
    /** The key. Null: it is the budget of an account. */
    key_id: keyId,
    /** The currency of the amounts: three capital letters, such as USD. */
    currency,
    /** As `period` of the budget in the configuration. */
    period,
    /** How much may be spent in one period. */
    amount: formatMoney(amount),
    /** How much was spent in the current period. */
    spent: formatMoney(spent),
    /** How much is held for running requests. */
    held: formatMoney(held),
    /** How much is neither spent nor held. At least 0. */
    left: formatMoney(left > 0n ? left : 0n),
    /** As Figures.ends. */
    ends,
  };
}

/** The budgets in the reports of all processes, of which only the deciding one has figures. */
export const statusOf = (reports: readonly unknown[], currency: string) =>
  (reports as readonly (readonly Figures[] | undefined)[])
    .flatMap((figures) => figures ?? [])
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((figures) => printedFigures(figures, currency));
