// The usage store in files, and functions with which a proof reads damaged files too.
export { cursorOrAll, dayFilesIn } from "./day-files.ts";
export { createFileStore } from "./file-store.ts";
export { orderedLines } from "./lines.ts";
