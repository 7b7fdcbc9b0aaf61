// What accounts and keys have spent: what the books know of before, and what this process counts.
export { createOpening, type ReadSpent } from "./opening-balance.ts";
export { PERIODS, periodEnd, periodName, type Period } from "./periods.ts";
export { createPurses, type BudgetLimit, type Figures, type Owner, type Purses } from "./purses.ts";
export { booksOf, readOutcomes, readSpent, type BooksContext, type Outcome } from "./read-books.ts";
