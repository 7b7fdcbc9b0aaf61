// The spend log, for the gateway that writes it and for the extensions that read it.
export { settleInterrupted } from "./interrupted.ts";
export { hasWriter, segmentName, segmentsIn, socketOf } from "./segment-names.ts";
export { createSpendLog } from "./spend-log.ts";
export { repeat, waitAtMost } from "./timers.ts";
