// A library for files that several processes of one machine share: locks, atomic replacement,
// watching, and ids and secrets that are created once.
export { dataDirIssues, makeDataDir } from "./data-dir.ts";
export {
  acquireSocketLock,
  BusyError,
  inodeOf,
  isLockHeld,
  pathExists,
  withLock,
} from "./process-lock.ts";
export { replaceFile, syncToDisk, writeDraft, writeError } from "./replace-file.ts";
export { createSealer, type Sealer } from "./sealed-text.ts";
export * from "./secret-file.ts";
export { watchFile, type ReadResult } from "./watch.ts";
