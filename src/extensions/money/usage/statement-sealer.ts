// What an extension that proves statements does for bills.
import { slot } from "../../../core/extension/installer.ts";
import type { BooksFiles } from "./books-files.ts";

/** What an account owes for a month, as `billing statement --json` prints it. */
export interface StatementToSeal {
  /** As UsageRecord.account. */
  readonly account: string;
  /** `YYYY-MM`, in UTC: the month of UsageRecord.day. */
  readonly month: string;
  /** Three capital letters. Only records in this currency are in its sums. */
  readonly currency: string;
  /** The sums of these records, as far as the proof looks at them. */
  readonly total: {
    /** In `currency`, as a decimal text. */
    readonly cost: string;
  };
}

/**
 * Prints a statement with the records that it is made of and their proof, as one line of JSON. The
 * books have a signer. It makes the bill while no pass copies. `print` resolves when it takes more.
 * Empty: statements cannot be sealed.
 */
export const statementSealerSlot =
  slot<
    (
      books: BooksFiles,
      makeBill: () => Promise<StatementToSeal>,
      print: (text: string) => Promise<void>,
    ) => Promise<void>
  >("statementSealer");
