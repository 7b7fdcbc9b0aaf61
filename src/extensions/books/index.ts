// The extension, and what other extensions use of the books.
export { extension } from "./extension.ts";
export { createBooks, type Books, type BooksStatus } from "./books.ts";
export { hasSpendLog, withBooks, withCopiedBooks } from "./books-command.ts";
export type { BooksContext } from "./books-context.ts";
export { bookSizes, copyShown, withProgress, type BookSizes } from "./books-progress.ts";
export { BooksFault } from "./books-fault.ts";
export { gatewayInstanceId } from "./data-dir-ids.ts";
export { openBooks, type BooksFiles } from "./books-files.ts";
export { createMonthFiles, type MonthFiles } from "./file-store/month-files.ts";
export { readLines, watchReading } from "./read-lines.ts";
export { jsonTextIn } from "./request-index/entries.ts";
export type {
  ClosedDays,
  Sealing,
  SealingExtension,
  SealingOptions,
  SegmentChain,
  StatementToSeal,
} from "./sealing.ts";
export { hasFileStore } from "./settings.ts";
export { decisive, readSegment } from "./spend-log/read-segment.ts";
export {
  parseSpendLine,
  type OpenRecord,
  type SettleRecord,
  type SpendRecord,
} from "./spend-log/records.ts";
export { recover } from "./spend-log/recovery.ts";
export { claimFileOf, isSegmentName, segmentsIn, strangersIn } from "./spend-log/segment-names.ts";
export {
  addSums,
  costText,
  createMonthSummer,
  isSameSum,
  NO_RECORDS,
  type MonthSums,
  type RecordSum,
} from "./usage/record-sums.ts";
export { retiredMonths } from "./usage/retired.ts";
export { byIdentity, copiedBytes, describeStale } from "./usage/segment-progress.ts";
export { addToSum, emptySum } from "./usage/sums.ts";
export { copySettled } from "./usage/sync.ts";
export {
  BUCKETS,
  bucketOf,
  fingerprint,
  parseUsageLine,
  recordText,
  usageRecord,
} from "./usage/usage-record.ts";
