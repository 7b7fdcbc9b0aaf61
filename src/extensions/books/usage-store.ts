// The contract of the stores that keep the usage records: files (file-store.ts), or PostgreSQL (postgres-store.ts).
import type { Cancel } from "../../core/http/cancel.ts";
import type { Dimension, SumBy, UsageRecord } from "./records.ts";
import type { Mark } from "./segments.ts";

/** `month`: `YYYY-MM`, in UTC. `own`: only what this data_dir's gateways have written, where others write into the same store. `skip`: so
 * many of those that fit are passed over. `cancel`: who asks may leave. */
export type UsageFilter = {
  readonly [option in "month" | "day" | "account" | "model" | "requestId"]?: string | undefined;
} & {
  readonly own?: boolean;
  readonly skip?: number | undefined;
  readonly cancel?: Cancel;
  /** Hears of lines that are no usage record, where else reading would fail at the first. */
  readonly unreadable?: (what: string) => void;
};

/** What a sync adds to the usage records, all of it or nothing. */
export interface UsageChange {
  /** No two of them have the same `usage_id`. */
  readonly records: readonly UsageRecord[];
  /** Those of `records` that take the place of one that says "interrupted". */
  readonly corrections: ReadonlySet<string>;
  readonly put: readonly Mark[];
  readonly drop: readonly Mark[];
}
/** Something about the usage records that their operator has to know. */
export interface StoreFault {
  readonly event: string;
  readonly detail: string;
  /** Nothing may be written before this is mended. */
  readonly blocks: boolean;
}
/** What a rebuild did to the records of this data_dir. */
export interface RebuildCounts {
  readonly added: number;
  readonly changed: number;
  /** Doubled records, and lines that are no records. */
  readonly removed: number;
  readonly unchanged: number;
  /** Records without lines in the spend log (any more), which stay as they were. */
  readonly left: number;
}

/** Records and marks move together or not at all, so that each settled request is there once, whatever dies when. */
export interface UsageStore {
  /** How far each segment has been copied. A segment may have several marks if its content was another when it was copied. */
  marks(): Promise<readonly Mark[]>;
  /** Looks for what must not be written to, or is written to by somebody else. */
  inspect(): Promise<readonly StoreFault[]>;
  /** Which of these records are there. */
  holds(
    records: readonly { readonly usage_id: string; readonly ended_at: string }[],
  ): Promise<ReadonlySet<string>>;
  commit(change: UsageChange): Promise<unknown>;
  /** Makes this data_dir's records anew from what `settled` yields (as often as it is called), and its marks; what `settled` does not
   * have stays, and so does a record of which `settled` only knows that it was interrupted. All or nothing. */
  rebuild(
    settled: () => AsyncIterable<readonly UsageRecord[]>,
    marks: readonly Mark[],
  ): Promise<RebuildCounts>;
  /** The records that fit, in batches, in flat memory, about in the order in which they ended. No batch is empty, and only the last one is small. */
  records(filter: UsageFilter): AsyncIterable<readonly UsageRecord[]>;
  /** What the records of a month that fit come to, by each combination of the dimensions `by`, at least one, in no particular order. */
  sums<D extends Dimension>(
    filter: UsageFilter & { readonly month: string },
    by: readonly D[],
  ): Promise<readonly SumBy<D>[]>;
  close(): Promise<void>;
}
