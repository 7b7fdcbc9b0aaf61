// What accounts and keys have spent: what the books know of before, and what this process counts.
export {
  createPurses,
  periodName,
  PERIODS,
  type Budget,
  type Figures,
  type Owner,
  type Purses,
  type Spent,
} from "./purses.ts";
export {
  createOpening,
  readOutcomes,
  readSpent,
  withBooks,
  type BooksContext,
  type Outcome,
} from "./read-books.ts";
