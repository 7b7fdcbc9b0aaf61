// The accountant of a gateway, or of the workers of one: by what is in memory or, where gateways
// share their budgets, by what they all know.
import type { Clock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Extension } from "../../../core/extension/extension.ts";
import type { Accountant } from "./contracts.ts";
import { createLocalAccountant, type LocalAccountant } from "./local.ts";
import { booksOf, readSpent } from "./read-books.ts";
import { createBudgetWarnings, type BudgetWarnings } from "./warnings.ts";

export interface AccountantOptions {
  /** The configuration at the start. */
  readonly config: Config;
  /** One of these may share budgets between gateways, one may bring the usage store. */
  readonly extensions: readonly Extension[];
  /** Tells which period it is, and times the minutes of token limits. */
  readonly clock: Clock;
  /** Gets warnings of budgets that run out, and books that cannot be read. */
  readonly diagnose: Diagnose;
}

/** What budgets that are shared stand on. */
export interface SharingOptions {
  /** The configuration at the start. */
  readonly config: Config;
  /** Knows what this gateway spends and holds. It warns of nothing. */
  readonly local: LocalAccountant;
  /** Here only what all gateways have spent is worth a warning. */
  readonly warnings: BudgetWarnings;
  /** Tells which period it is, and times what is written anew. */
  readonly clock: Clock;
  /** Tells the operator of a store that fails, or has forgotten what was spent. */
  readonly diagnose: Diagnose;
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
export function createAccountant(options: AccountantOptions): Accountant {
  const { config, extensions, clock, diagnose } = options;
  const withBooks = booksOf(config, options);
  const warnings = createBudgetWarnings(diagnose);
  const createLocal = (own: BudgetWarnings): LocalAccountant =>
    createLocalAccountant({
      clock,
      diagnose,
      readSpent: (before) => withBooks((books) => readSpent(books, { ownOnly: true, before })),
      warnings: own,
    });
  const shared = extensions.find(sharesBudgets)?.shareBudgets({
    config,
    local: createLocal({ take: () => undefined }),
    warnings,
    clock,
    diagnose,
  });
  return shared ?? createLocal(warnings);
}
