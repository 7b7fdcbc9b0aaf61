// What an extension that proves statements does for bills.
import type { Extension } from "../../../core/extension/extension.ts";
import type { BooksFiles } from "./books-files.ts";

/** What an account owes for a month, as `billing statement --json` prints it. */
export interface StatementToSeal {
  /** As UsageRecord.account. */
  readonly account: string;
  /** `YYYY-MM`, in UTC: the month of UsageRecord.day. */
  readonly month: string;
  /** Three capital letters. Only records in this currency are in its sums. */
  readonly currency: string;
}

/** An extension that proves statements. */
export interface StatementSealer extends Extension {
  /**
   * Prints a statement with the records that it is made of and their proof, as one line of JSON.
   * The books have a signer. `print` resolves when it takes more.
   */
  printSealedStatement(
    books: BooksFiles,
    statement: StatementToSeal,
    print: (text: string) => Promise<void>,
  ): Promise<void>;
}

export const sealsStatements = (extension: Extension): extension is StatementSealer =>
  "printSealedStatement" in extension;
