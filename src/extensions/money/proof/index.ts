// What the fronts of the proof use of it.
export { readDayLines, type DayLine } from "./day-lines.ts";
export { createFindings, type Findings } from "./findings.ts";
export type { DayCounts, DayProof } from "./prove-day.ts";
export type { SegmentProof } from "./prove-segment.ts";
export { proveBooks, type BooksProof, type GoneSegment, type ProofOptions } from "./prove.ts";
export type { RecordSpan } from "./totals.ts";
