// The usage store in files, and what a proof reads of them as they are.
export { cursorOrAll, dayFilesIn } from "./day-files.ts";
export { createFileStore } from "./file-store.ts";
export { orderedLines } from "./lines.ts";
