// How the budgets stand, for people and for other programs: of the accounts and keys that have one.
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures, Period } from "./purses.ts";

/** A budget, as GET /status and `budget show` have it. Amounts are exact decimals. */
export interface BudgetStatus {
  /** Null: it is the budget of a key. */
  readonly account: string | null;
  /** Null: it is the budget of an account. */
  readonly key_id: string | null;
  /** Of its amounts: three capital letters, such as USD. */
  readonly currency: string;
  /** When the budget is renewed. `total`: never. */
  readonly period: Period;
  /** What may be spent in one period. */
  readonly amount: string;
  /** What was spent in the current period. */
  readonly spent: string;
  /** For requests that run. */
  readonly held: string;
  /** Neither spent nor held. */
  readonly left: string;
  /** Null: never. */
  readonly ends: string | null;
}

export function printed(figures: Figures, currency: string): BudgetStatus {
  const { account, keyId, period, amount, spent, held, ends } = figures;
  const left = amount - spent - held;
  return {
    account: keyId === null ? account : null,
    key_id: keyId,
    currency,
    period,
    amount: formatMoney(amount),
    spent: formatMoney(spent),
    held: formatMoney(held),
    left: formatMoney(left > 0n ? left : 0n),
    ends,
  };
}

/** What the one process reports that knows; workers report nothing. */
export const statusOf = (reports: readonly unknown[], currency: string): readonly BudgetStatus[] =>
  (reports as readonly (readonly Figures[] | undefined)[])
    .flatMap((figures) => figures ?? [])
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((figures) => printed(figures, currency));
