// Files that several processes of one machine read and write: locks, replacement as a whole, ids
// that are made once, watching.
export { dataDirIssues, makeDataDir } from "./data-dir.ts";
export { gatewayInstanceId, placeOf } from "./data-dir-ids.ts";
export {
  acquireSocketLock,
  BusyError,
  inodeOf,
  isLockHeld,
  isThere,
  withLock,
} from "./process-lock.ts";
export { replaceFile, syncToDisk, writeDraft } from "./replace-file.ts";
export { createSeal, type Seal } from "./sealed-text.ts";
export { readOrCreateHex, secretOf } from "./secret-file.ts";
export { watchFile, type Found } from "./watch.ts";
