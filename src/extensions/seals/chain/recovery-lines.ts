// Knows the lines of a recovery, for a sealed segment that a gateway without seals has recovered.
// Whoever can write the file can append lines without a seal, so such a line may only say what a
// recovery says: that a request of this segment, which nothing has settled, cost nothing.
import { parseSpendLine, type OpenRecord, type SettleRecord } from "../../books/index.ts";
import { parseMoney } from "../../usage-records/index.ts";

/** The requests of a segment while it is read. */
export interface RecoveryLines {
  /** Takes a line that is not asked about. */
  take(line: string): void;
  /** Whether a recovery wrote the line after those before it. */
  accepts(line: string): boolean;
}

const OPEN = '{"type":"open","spend_id":"';
const SETTLE = '{"type":"settle","spend_id":"';
/** What is left of a seal of which one byte was changed. */
const DAMAGED_SEAL = /[0-9a-f]{30}.{0,40}$/s;

const idAfter = (start: string, line: string): string =>
  line.slice(start.length, line.indexOf('"', start.length));

/** Begins to read a segment. */
export function createRecoveryLines(): RecoveryLines {
  /** The lines of requests that are not settled. Only requests in flight are held in memory. */
  const unsettled = new Map<string, string>();
  return {
    take(line) {
      if (line.startsWith(OPEN)) unsettled.set(idAfter(OPEN, line), line);
      else if (line.startsWith(SETTLE)) unsettled.delete(idAfter(SETTLE, line));
    },
    accepts(line) {
      const settle = parseSpendLine(line);
      if (settle?.type !== "settle" || DAMAGED_SEAL.test(line)) return false;
      const open = parseSpendLine(unsettled.get(settle.spend_id) ?? "");
      if (open?.type !== "open" || JSON.stringify(settle) !== line) return false;
      unsettled.delete(settle.spend_id);
      return isOf(open, settle) && costsNothing(settle);
    },
  };
}

const isOf = (open: OpenRecord, settle: SettleRecord): boolean =>
  open.account === settle.account &&
  open.key_id === settle.key_id &&
  open.gateway_request_id === settle.gateway_request_id &&
  open.model_requested === settle.model_requested &&
  open.time <= settle.time;

const costsNothing = (settle: SettleRecord): boolean =>
  settle.status === "interrupted" &&
  settle.provider === null &&
  settle.model_served === null &&
  parseMoney(settle.cost) === 0n &&
  Object.values(settle.usage).every((count) => count === 0);
