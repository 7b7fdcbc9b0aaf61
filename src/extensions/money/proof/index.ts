// What the fronts of the proof use of it.
export type { DayCounts } from "./day-stream.ts";
export { createFindings, type Findings } from "./findings.ts";
export type { ProofTotals } from "./judge.ts";
export type { SegmentProof } from "./prove-segment.ts";
export { proveBooks, type BooksProof, type GoneSegment, type ProofOptions } from "./prove.ts";
export { sourceOfFiles, sourceOfStore, type RecordSource } from "./record-source.ts";
