// The lines of the spend log, and amounts of money.
export { AMOUNT, parseMoney } from "./amounts.ts";
export { isoTime } from "./iso-time.ts";
export { openText, settleText } from "./line-text.ts";
export {
  parseSpendLine,
  settleRecord,
  type OpenRecord,
  type SettleRecord,
} from "./spend-lines.ts";
