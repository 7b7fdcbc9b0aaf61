// A library for dialects: what the words of providers mean, in errors and at the end of a reply.
export {
  DetailedRefusal,
  detailedRefusal,
  type RefusalDetails,
} from "./detailed-refusal.ts";
export { finishPart, finishReasonOf } from "./finish-reasons.ts";
export { refusal, throwErrorIn } from "./refusal.ts";
export {
  callIdsIn,
  isUsableId,
  startedCall,
  statedId,
  usableId,
  withCallIds,
  withStatedIds,
} from "./usable-id.ts";
export { msUntilReset } from "./wait-times.ts";
