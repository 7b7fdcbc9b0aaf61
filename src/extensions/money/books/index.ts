// The extension, and what the commands on the books have in common.
export {
  bookSizes,
  hasSpendLog,
  withBooks,
  withCopiedBooks,
  withProgress,
  type BooksContext,
} from "./books-command.ts";
export { extension } from "./extension.ts";
