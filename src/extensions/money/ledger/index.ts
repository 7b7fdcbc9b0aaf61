// What the spend log's readers and the gateway use of it.
export { gatewayInstanceId, placeOf } from "./data-dir-ids.ts";
export { settleInterrupted } from "./interrupted.ts";
export { hasWriter } from "./segment-claim.ts";
export { segmentsIn, socketOf, strangersIn } from "./segment-names.ts";
export { spend } from "./settings.ts";
export { createSpendLog } from "./spend-log.ts";
export { repeat, waitAtMost } from "./timers.ts";
