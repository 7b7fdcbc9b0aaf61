// The interface of an extension that prints statements with their proof.
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
  /** The sums of these records. The proof needs only the cost. */
  readonly total: {
    /** In `currency`, as a decimal text. */
    readonly cost: string;
  };
}

/**
 * Prints a statement with its records and their proof, as one line of JSON. The books must have a
 * signer. Calls `makeBill` under the lock of the books, so that no pass runs meanwhile. `print`
 * resolves when its output can take more. Empty: statements cannot be sealed.
 */
export const statementSealerSlot =
  slot<
    (
      books: BooksFiles,
      makeBill: () => Promise<StatementToSeal>,
      print: (text: string) => Promise<void>,
    ) => Promise<void>
  >("statementSealer");
