// Files that several processes of one machine share: locks, atomic replacement, ids and secrets
// that are made once, watching.
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
