// The extension, and what the commands on the books have in common.
export {
  hasSpendLog,
  withBooks,
  withCopiedBooks,
  type BooksContext,
} from "./books-command.ts";
export { install, settings } from "./books.ts";
