// What the spend log's readers and the gateway use of it.
export { settleInterrupted } from "./interrupted.ts";
export { hasWriter, segmentName, segmentsIn, socketOf } from "./segment-names.ts";
export { createSpendLog } from "./spend-log.ts";
export { repeat, waitAtMost } from "./timers.ts";
