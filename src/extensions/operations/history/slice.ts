// One slice of time in one process: tallies, refusals and requests while they are counted. Every
// map is bounded: of more accounts or models than there is room for, the rest is "other". What is
// shown of single requests is made when the slice ends, for those that it keeps.
import type { AccessRecord } from "../../../core/http/exchange.ts";
import type { KeyCount, RefusalCount, RequestEntry, Slice } from "./contracts.ts";
import { endedEntry, outcomeIn, type LiveRequest } from "./entries.ts";
import { ACCOUNT, TOTAL, type Outcome } from "./figures.ts";
import { countSettlement, type Settled } from "./settlements.ts";
import { MAX_NAMES, tallyOf } from "./tallies.ts";

/** Requests of each kind that a slice keeps: the last of them. */
const MAX_ENDED = 60;

/**
 * The kinds of requests that are kept apart, so that a flood of one kind does not push out the
 * others.
 */
export type Kind = "fine" | "refused" | "failed";

export function kindOf(outcome: Outcome | null): Kind {
  if (outcome === "5xx") return "failed";
  return outcome === "ok" || outcome === "cancelled" || outcome === null ? "fine" : "refused";
}

/** A request that has ended, before it is made an entry. */
interface Ended {
  readonly record: AccessRecord;
  readonly live: LiveRequest | undefined;
}

export interface SliceCounter {
  /** As Slice.seq. */
  readonly seq: number;
  /** When the slice began, in milliseconds since 1970. */
  readonly at: number;
  /** A response has left at `time`, in milliseconds since 1970. */
  responded(record: AccessRecord, live: LiveRequest | undefined, time: number): void;
  /** A request was settled. Its response may leave in a later slice. */
  settled(settled: Settled): void;
  /** The slice, when it is over. Undefined: nothing was counted. */
  close(): Slice | undefined;
}

export function createSliceCounter(seq: number, at: number): SliceCounter {
  const kept: Record<Kind, Ended[]> = { fine: [], refused: [], failed: [] };
  const counted: Record<Kind, number> = { fine: 0, refused: 0, failed: 0 };
  const slice: Omit<Slice, "ended"> = {
    seq,
    at,
    total: TOTAL.empty(),
    accounts: new Map(),
    models: new Map(),
    refusals: new Map(),
    keys: new Map(),
    faults: new Map(),
  };
  let isEmpty = true;

  function keep(outcome: Outcome, ended: Ended): void {
    const kind = kindOf(outcome);
    kept[kind][counted[kind] % MAX_ENDED] = ended;
    counted[kind] += 1;
  }

  function countRefusal(record: AccessRecord, time: number): void {
    const { account = null, key_id: key = null, error_code: code, status } = record;
    const name = `${account}\0${key}\0${code}`;
    const known = slice.refusals.get(name);
    if (known) {
      known.count += 1;
      known.last = time;
      return;
    }
    if (slice.refusals.size >= MAX_NAMES) return;
    const why = { account, key, status, code: code ?? String(status) };
    const refusal: RefusalCount = { ...why, count: 1, first: time, last: time };
    slice.refusals.set(name, refusal);
  }

  /** Undefined: there is no room for one more key. */
  function keyCount(key: string): KeyCount | undefined {
    const known = slice.keys.get(key);
    if (known || slice.keys.size >= MAX_NAMES) return known;
    const count = { requests: 0, refused: 0, cost: 0, last: at };
    slice.keys.set(key, count);
    return count;
  }

  function countKey(key: string, isRefused: boolean, time: number): void {
    const count = keyCount(key);
    if (!count) return;
    count.requests += 1;
    count.last = time;
    if (isRefused) count.refused += 1;
  }

  return {
    seq,
    at,
    responded(record, live, time) {
      isEmpty = false;
      const { account, key_id: key } = record;
      const outcome = outcomeIn(record, live?.settlement);
      const tally = tallyOf(slice.accounts, account ?? "", ACCOUNT.empty);
      slice.total[TOTAL.at(outcome)]! += 1;
      tally[ACCOUNT.at(outcome)]! += 1;
      const kind = kindOf(outcome); // a stream that broke off has the status 200
      if (kind !== "fine") countRefusal(record, time);
      if (key) countKey(key, kind === "refused", time);
      keep(outcome, { record, live });
    },
    settled(settled) {
      isEmpty = false;
      const key = keyCount(settled.opening.keyId);
      if (key) key.cost += Number(settled.settlement.cost);
      countSettlement(slice, settled);
    },
    close() {
      if (isEmpty) return undefined;
      const kinds = Object.keys(kept) as Kind[];
      const ended: RequestEntry[] = kinds
        .flatMap((kind) => inOrder(kept[kind], counted[kind]))
        .map(({ record, live }) => endedEntry(record, live));
      ended.sort((a, b) => (a.ended ?? 0) - (b.ended ?? 0));
      return { ...slice, ended };
    },
  };
}

/** The entries of a ring, in the order in which they were added. `count`: how many were put in. */
function inOrder<T>(ring: readonly T[], count: number): readonly T[] {
  const first = count > MAX_ENDED ? count % MAX_ENDED : 0;
  return [...ring.slice(first), ...ring.slice(0, first)];
}
