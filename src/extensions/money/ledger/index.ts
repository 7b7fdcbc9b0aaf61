// What the spend log's readers and the gateway use of it.
export type { SpendLogOptions } from "./begin-segment.ts";
export { gatewayInstanceId, placeOf } from "./data-dir-ids.ts";
export { settleInterrupted, type InterruptedOptions } from "./interrupted.ts";
export type { SpendEntry } from "./segment.ts";
export { hasWriter } from "./segment-claim.ts";
export { isSegmentName, segmentsIn, socketOf, strangersIn } from "./segment-names.ts";
export { spend, type SpendSettings } from "./settings.ts";
export { createSpendLog, type SpendLog, type SpendRequest } from "./spend-log.ts";
export { repeat, waitAtMost } from "./timers.ts";
