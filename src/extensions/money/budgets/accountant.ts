// The accountant of a gateway, or of the workers of one: by what is in memory or, where gateways
// share their budgets, by what they all know.
import type { Extension } from "../../../core/extension/extension.ts";
import { booksOf, readSpent, type BooksContext, type ReadSpent } from "../spent/index.ts";
import type { Accountant } from "./contracts.ts";
import { createLocalAccountant, type LocalAccountant } from "./local.ts";
import { createBudgetWarnings, type BudgetWarnings } from "./warnings.ts";

/** What budgets that are shared stand on. */
export interface SharingOptions extends BooksContext {
  /** Knows what this gateway spends and holds. It warns of nothing. */
  readonly local: LocalAccountant;
  /** Here only what all gateways have spent is worth a warning. */
  readonly warnings: BudgetWarnings;
}

/** An extension by which several gateways can share their budgets. */
export interface SharingExtension extends Extension {
  /**
   * Undefined: the configuration names nothing to share them in. Throws a ValidationError if the
   * package that it takes is missing.
   */
  shareBudgets(options: SharingOptions): Accountant | undefined;
}

const sharesBudgets = (extension: Extension): extension is SharingExtension =>
  "shareBudgets" in extension;

/** Throws as SharingExtension.shareBudgets. */
export function createAccountant(context: BooksContext): Accountant {
  const withBooks = booksOf(context);
  const readOwn: ReadSpent = (before) =>
    withBooks((books) => readSpent(books, { ownOnly: true, before }));
  const createLocal = (warnings: BudgetWarnings): LocalAccountant =>
    createLocalAccountant({ ...context, readSpent: readOwn, warnings });
  const warnings = createBudgetWarnings(context.diagnose);
  const local = createLocal({ take: () => undefined });
  const shared = context.extensions
    .find(sharesBudgets)
    ?.shareBudgets({ ...context, local, warnings });
  return shared ?? createLocal(warnings);
}
