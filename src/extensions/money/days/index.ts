// What the extensions that read the files of the books have in common.
export { brokenFile } from "./broken-file.ts";
export { createCoverage, type Coverage, type Listing } from "./coverage.ts";
export {
  bookedDay,
  createDays,
  parseClosedDay,
  type ClosedDay,
  type Days,
  type DaySegment,
  type DaysLine,
} from "./days.ts";
export { createMerkleRoot, leafOf, nodeOf, rootFrom } from "./merkle.ts";
export { readLines, watchReading } from "./read-lines.ts";
