// How the budgets stand, for people and for other programs: of the accounts and keys that have one.
import { formatMoney } from "../../../core/ledger/price.ts";
import type { Figures, Period } from "../spent/index.ts";
import { accountOf } from "./limits.ts";
import { leftOf } from "./refusals.ts";

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
  const { name, period, amount, spent, held, ends } = figures;
  const account = accountOf(name) ?? null;
  return {
    account,
    key_id: account === null ? name.slice(name.indexOf(" ") + 1) : null,
    currency,
    period,
    amount: formatMoney(amount),
    spent: formatMoney(spent),
    held: formatMoney(held),
    left: formatMoney(leftOf(figures)),
    ends,
  };
}

/** What the one process reports that knows; workers report nothing. */
export function statusOf(reports: readonly unknown[], currency: string): readonly BudgetStatus[] {
  const known = reports.filter((report) => report !== undefined) as (readonly Figures[])[];
  return known
    .flat()
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((figures) => printed(figures, currency));
}
