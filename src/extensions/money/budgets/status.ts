// How the budgets stand, for people and for other programs: of the accounts and keys that have one.
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures } from "./purses.ts";

/** A budget, as GET /status and `budget show` have it. Amounts are exact decimals. */
export function shownFigures(figures: Figures, currency: string) {
  const { account, keyId, period, amount, spent, held, ends } = figures;
  const left = amount - spent - held;
  return {
    /** Null: it is the budget of a key. */
    account: keyId === null ? account : null,
    /** Null: it is the budget of an account. */
    key_id: keyId,
    /** Of its amounts: three capital letters, such as USD. */
    currency,
    /** As `period` of the budget in the configuration. */
    period,
    /** What may be spent in one period. */
    amount: formatMoney(amount),
    /** What was spent in the current period. */
    spent: formatMoney(spent),
    /** For requests that run. */
    held: formatMoney(held),
    /** Neither spent nor held. */
    left: formatMoney(left > 0n ? left : 0n),
    /** As Figures.ends. */
    ends,
  };
}

/** What the one process reports that knows; workers report nothing. */
export const statusOf = (reports: readonly unknown[], currency: string) =>
  (reports as readonly (readonly Figures[] | undefined)[])
    .flatMap((figures) => figures ?? [])
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((figures) => shownFigures(figures, currency));
