// Files that several processes of one machine read and write: locks, replacement as a whole, ids
// that are made once, watching.
export { dataDirIssues, makeDataDir } from "./data-dir.ts";
export {
  acquireSocketLock,
  BusyError,
  inodeOf,
  isLockHeld,
  isThere,
  withLock,
} from "./process-lock.ts";
export { replaceFile, syncToDisk, writeDraft, writeError } from "./replace-file.ts";
export { createSeal, type Seal } from "./sealed-text.ts";
export { gatewayInstanceId, placeOf, readOrCreateHex, secretOf } from "./secret-file.ts";
export { watchFile, type Found } from "./watch.ts";
