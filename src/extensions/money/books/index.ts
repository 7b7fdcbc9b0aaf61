// The extension, and what the commands on the books have in common.
export { hasSpendLog, withBooks, withCopiedBooks } from "./books-command.ts";
export type { BooksContext } from "./books-context.ts";
export { bookSizes, copyShown, withProgress, type BookSizes } from "./books-progress.ts";
export { createBooks, type Books, type BooksStatus } from "./books.ts";
export { extension } from "./extension.ts";
