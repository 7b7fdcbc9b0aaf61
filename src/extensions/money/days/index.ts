// What the extensions that read the files of the books have in common.
export { createCoverage, type Coverage, type Listing } from "./coverage.ts";
export {
  BooksFault,
  brokenFile,
  createDays,
  MENDING,
  parseClosedDay,
  type ClosedDay,
  type Days,
  type DaySegment,
  type DaysLine,
} from "./days.ts";
export { createMerkleRoot, leafOf, rootFrom } from "./merkle.ts";
export { readLines } from "./read-lines.ts";
