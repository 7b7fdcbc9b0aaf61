// Where usage records are kept: the contract that the file store and PostgreSQL fulfil. Records and cursor move together or
// not at all, so that each settled request is there once, whatever dies when.
import type { UsageRecord } from "./records.ts";

export interface UsageFilter {
  readonly account?: string | undefined;
  /** `YYYY-MM`, by the time at which a request ended (UTC). */
  readonly month?: string | undefined;
  readonly requestId?: string | undefined;
  /** Only what this data_dir's gateways have written, where others write into the same store. */
  readonly own?: boolean;
}

export interface UsageStore {
  /** Up to which byte each segment has been copied; a segment that is not named: not at all. */
  cursor(): Promise<ReadonlyMap<string, number>>;
  /** Adds the records and moves the cursor, both or neither. */
  commit(records: readonly UsageRecord[], cursor: ReadonlyMap<string, number>): Promise<void>;
  /** Drops segments that are no more from the cursor. */
  forget(segments: readonly string[]): Promise<void>;
  /** The records that fit, in batches, in flat memory; in no particular order. */
  records(filter: UsageFilter): AsyncIterable<readonly UsageRecord[]>;
  close(): Promise<void>;
}
