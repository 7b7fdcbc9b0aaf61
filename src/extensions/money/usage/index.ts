// The extension, and what other extensions use of the books.
export { extension } from "./extension.ts";
export { createBooks, type Books, type BooksStatus } from "./books.ts";
export { hasSpendLog, withBooks, withCopiedBooks } from "./books-command.ts";
export type { BooksContext } from "./books-context.ts";
export { openBooks, type BooksFiles, type BooksOptions } from "./books-files.ts";
export { bookSizes, copyShown, withProgress, type BookSizes } from "./books-progress.ts";
export { brokenFile } from "./broken-file.ts";
export {
  createRecordAdder,
  dayOf,
  lineOf,
  type DayRecords,
  type RecordAdder,
} from "./close-days.ts";
export {
  bookedDay,
  createDays,
  dayAfter,
  hashOfLine,
  parseClosedDay,
  type ClosedDay,
  type Days,
  type DaySegment,
  type DaysLine,
} from "./days.ts";
export { createDayFiles } from "./file-store/day-files.ts";
export { createMerkleRoot, leafOf, rootFrom } from "./merkle.ts";
export { readLines, watchReading } from "./read-lines.ts";
export {
  createSegmentReader,
  type SegmentReader,
  type Settled,
  type SettledBatch,
  type UnsettledRequest,
} from "./segment-reader.ts";
export { hasFileStore } from "./settings.ts";
export { shareBooks, type SharedBooks } from "./shared-books.ts";
export {
  opensSigner,
  sealsStatements,
  type Signer,
  type SigningExtension,
  type StatementSealer,
  type StatementToSeal,
} from "./signer.ts";
export { BooksFault, copySettled, syncUsage, type SyncResult } from "./sync.ts";
