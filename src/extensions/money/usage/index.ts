// The sync, which copies the spend log into usage records, and the books that it works on.
export { BooksFault } from "../days/index.ts";
export * from "./books-files.ts";
export { createRecordAdder, differencesFrom, lineOf, type RecordAdder } from "./close-days.ts";
export { copyFaults } from "./segment-copies.ts";
export * from "./segment-reader.ts";
export { isExpired } from "./retention.ts";
export { hasFileStore, spend, usage } from "./settings.ts";
export { shareBooks, type SharedBooks } from "./shared-books.ts";
export { copySettled, syncUsage, type SyncResult } from "./sync.ts";
