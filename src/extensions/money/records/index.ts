// What everything that deals with money has in common: the lines of the spend log, usage records,
// sums of them, and the contract of the stores that keep them.
export { AMOUNT, parseMoney } from "./amounts.ts";
export type { AttemptCharge, AttemptDetails, RequestDetails } from "./details.ts";
export { dayAfter, dayOf, isDay, isoTime } from "./iso-time.ts";
export { openText, settleText } from "./line-text.ts";
export {
  parseSpendLine,
  settleRecord,
  type OpenRecord,
  type SettleRecord,
  type SpendRecord,
  type TokenCounts,
} from "./spend-lines.ts";
export * from "./store.ts";
export {
  addToSum,
  costsByCurrency,
  createSummer,
  DIMENSIONS,
  emptySum,
  parseSums,
  sumOfRecord,
  sumsText,
  type Dimension,
  type Sum,
  type SumBy,
  type Summer,
} from "./sums.ts";
export {
  hashOfLines,
  parseUsageLine,
  USAGE_COLUMNS,
  usageRecord,
  withoutDetails,
  type LogPlace,
  type UsageRecord,
} from "./usage-record.ts";
