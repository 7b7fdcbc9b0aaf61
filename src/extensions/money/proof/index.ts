// The comparison that `audit`, `seal verify` and `books rebuild` share.
export { readDayLines, type DayLine } from "./day-lines.ts";
export { createFindings, type Findings } from "./findings.ts";
export { booksToProve, proveBooks, type BooksProof, type BooksToProve } from "./prove.ts";
export type { DayProof } from "./prove-day.ts";
export { costsOf, totalIn } from "./totals.ts";
