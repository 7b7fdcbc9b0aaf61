// The extension, and the functions that all commands on the books share.
export {
  assertSpendLog,
  withBooks,
  withCopiedBooks,
  type BooksContext,
} from "./books-command.ts";
export { install, settings } from "./books.ts";
