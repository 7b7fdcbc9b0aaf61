// One slice of time in one process: tallies, refusals and faults while they are counted. Every map
// is bounded: of more accounts, keys or models than there is room for, the rest is "other".
import type { AccessRecord } from "../../core/http/access-log.ts";
import type { Opening, Settlement } from "../../core/ledger/ledger.ts";
import type { KeyCount, RefusalCount, RequestEntry, Slice } from "./contracts.ts";
import { ACCOUNT, TOTAL } from "./figures.ts";
import { countSettlement } from "./settlements.ts";
import { adder, MAX_NAMES, tallyOf } from "./tallies.ts";

/** Requests of each kind that a slice keeps: the last of them. */
const MAX_ENDED = 60;

export interface SliceCounter {
  readonly slice: Slice;
  /** Whether anything has been counted. */
  isEmpty(): boolean;
  /** A response has left. */
  responded(entry: RequestEntry, record: AccessRecord): void;
  /** A request was settled at `time`, `durationMs` after it was opened. */
  settled(
    opening: Opening,
    settlement: Settlement,
    end: { durationMs: number; time: number },
  ): void;
}

/** What requests are kept apart by, so that a flood of one kind does not push out the others. */
export function kindOf({ outcome }: RequestEntry): "fine" | "refused" | "failed" {
  if (outcome === "5xx") return "failed";
  return outcome === "ok" || outcome === "cancelled" || outcome === null ? "fine" : "refused";
}

export function createSliceCounter(seq: number, at: number): SliceCounter {
  const ended: RequestEntry[] = [];
  const kept = { fine: 0, refused: 0, failed: 0 };
  const slice: Slice = {
    seq,
    at,
    total: TOTAL.empty(),
    accounts: new Map(),
    models: new Map(),
    refusals: new Map(),
    keys: new Map(),
    faults: new Map(),
    ended,
  };
  const addTotal = adder(TOTAL, slice.total);
  let isEmpty = true;

  function keep(entry: RequestEntry): void {
    const kind = kindOf(entry);
    if (kept[kind] < MAX_ENDED) kept[kind] += 1;
    else
      ended.splice(
        ended.findIndex((other) => kindOf(other) === kind),
        1,
      );
    ended.push(entry);
  }

  function countRefusal(entry: RequestEntry): void {
    const { account, key, status, code, ended: time } = entry;
    if (status === null || status < 400 || status === 499) return;
    const name = [account ?? "", key ?? "", code ?? ""].join("\0");
    const at = time ?? slice.at;
    const known = slice.refusals.get(name);
    if (!known && slice.refusals.size >= MAX_NAMES) return;
    const refusal = known ?? newRefusal(entry, at);
    slice.refusals.set(name, refusal);
    refusal.count += 1;
    refusal.last = at;
  }

  /** Undefined: there is no room for one more key. */
  function keyCount(key: string): KeyCount | undefined {
    const known = slice.keys.get(key);
    if (known || slice.keys.size >= MAX_NAMES) return known;
    const count = { requests: 0, refused: 0, cost: 0, last: slice.at };
    slice.keys.set(key, count);
    return count;
  }

  function countKey({ key, status, ended: time }: RequestEntry): void {
    const count = key === null ? undefined : keyCount(key);
    if (!count) return;
    count.requests += 1;
    count.last = time ?? slice.at;
    if (status !== null && status >= 400 && status < 499) count.refused += 1;
  }

  return {
    slice,
    isEmpty: () => isEmpty,
    responded(entry, record) {
      isEmpty = false;
      const outcome = entry.outcome ?? "ok";
      addTotal(outcome);
      adder(ACCOUNT, tallyOf(slice.accounts, record.account ?? "", ACCOUNT.empty))(outcome);
      countRefusal(entry);
      countKey(entry);
      keep(entry);
    },
    settled(opening, settlement, end) {
      isEmpty = false;
      const key = keyCount(opening.keyId);
      if (key) key.cost += Number(settlement.cost);
      countSettlement(slice, { opening, settlement, ...end });
    },
  };
}

const newRefusal = ({ account, key, status, code }: RequestEntry, at: number): RefusalCount => ({
  account,
  key,
  status: status ?? 0,
  code: code ?? String(status),
  count: 0,
  first: at,
  last: at,
});
