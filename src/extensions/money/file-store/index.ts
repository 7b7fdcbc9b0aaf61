// The usage store in files.
export { createDayFiles } from "./day-files.ts";
export { createFileStore } from "./file-store.ts";
export { segmentIn } from "./lines.ts";
