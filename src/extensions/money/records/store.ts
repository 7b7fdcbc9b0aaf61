// The contract of the stores that keep usage records: files of data_dir, or a database. The sync
// writes into one of them. Bills, budgets, receipts and proofs read from it.
import { slot } from "../../../core/extension/installer.ts";
import type { Dimension, SumBy } from "./sums.ts";
import type { UsageRecord } from "./usage-record.ts";

/** How far a segment of the spend log has been copied. */
export interface SegmentCursor {
  /**
   * The spend_id of its first line, by which another file of the same name is noticed. Empty, with
   * 0 bytes: the segment is gone but its records exist, so no new segment may take its name.
   */
  readonly first: string;
  /** How many bytes are copied. They end with a line end. */
  readonly bytes: number;
  /** Lines in these bytes. */
  readonly lines: number;
  /** Requests with an open line but no settle line in these bytes. */
  readonly unsettled: number;
  /**
   * Records or closed days refer to lines beyond the end of the file, because an older copy of the
   * log was restored. Its open requests may have records already, so nothing more is copied from
   * it or settled in it.
   */
  readonly isCut?: true;
}

/** How far the spend log has been copied, by the file names of its segments. */
export type LogCursor = Readonly<Record<string, SegmentCursor>>;

/** A database cannot be reached, or rejects a query. The message is for the operator. */
export class StoreError extends Error {}

/** A copy of the data_dir has moved the cursor. Nothing is copied until `books rebuild` has run. */
export class CopiedElsewhere extends StoreError {}

/** Which records to read: those that match every member. An absent member matches all. */
export interface UsageFilter {
  /** The month of the day on which a record is booked: `YYYY-MM`. */
  readonly month?: string | undefined;
  /** The day on which it is booked: `YYYY-MM-DD`. */
  readonly day?: string | undefined;
  /** The first such day. */
  readonly from?: string | undefined;
  /** The last such day. */
  readonly to?: string | undefined;
  /** As UsageRecord.account. */
  readonly account?: string | undefined;
  /** As UsageRecord.model. */
  readonly model?: string | undefined;
  /** As UsageRecord.key_id. */
  readonly key_id?: string | undefined;
  /** As UsageRecord.provider. Empty: only requests that no provider began to answer. */
  readonly provider?: string | undefined;
  /** Leave out the records of other data_dirs whose gateways write into the same store. */
  readonly ownOnly?: boolean;
}

/** Whether records that are booked on a day may match a filter. */
export function includesDay(filter: UsageFilter, booked: string): boolean {
  const { month = "", day = booked, from = "", to = "9999-12-31" } = filter;
  return booked.startsWith(month) && booked === day && booked >= from && booked <= to;
}

/** Which records to find by their request id. */
export interface RequestQuery {
  /** The gateway_request_id. */
  readonly requestId: string;
  /** Absent: those of every account. */
  readonly account?: string | undefined;
  /** How many records to find at most. */
  readonly limit: number;
}

/** A fault of the books that does not stop a pass, but that the operator must know. */
export interface StoreFault {
  /** The name of the diagnostic, in snake_case. */
  readonly event: string;
  /** One sentence: what is wrong, and how to repair it. */
  readonly detail: string;
}

/** One line of a day. */
export interface UsageLine {
  /** As the sync wrote it, without its line end. */
  readonly text: string;
  /** Undefined: the line is not a usage record. */
  readonly record: UsageRecord | undefined;
}

/** A line with its number in the day, as it stands there. The first line has 1. */
export interface NumberedLine extends UsageLine {
  readonly number: number;
}

/** Consecutive lines of a day in the order of the log. */
export interface UsageBatch {
  /** A line that is no record keeps its place. */
  readonly lines: readonly NumberedLine[];
  /** The bytes of the lines in their file. Absent: the store has no files. */
  readonly bytes?: Buffer;
}

/** Keeps usage records. All promises reject if the records cannot be read or written. */
export interface UsageStore {
  /**
   * How far the log was copied. Empty: nothing was. Rejects with a BooksFault if records were
   * changed or lost, or with a CopiedElsewhere. Then nothing may be written until the books are
   * repaired.
   */
  cursor(): Promise<LogCursor>;
  /** Looks for faults that do not prevent writing. */
  inspect(): Promise<readonly StoreFault[]>;
  /**
   * Adds records and sets the cursor: both or neither. The records are of open days, and their
   * usage_ids are new and unique.
   */
  add(records: readonly UsageRecord[], cursor: LogCursor): Promise<void>;
  /** The days on which this data_dir has records, in their order. */
  days(): Promise<readonly string[]>;
  /** Yields the lines of this data_dir's records of a day, by segment, then by line. */
  linesOf(day: string): AsyncIterable<UsageBatch>;
  /**
   * Prepares a day for closing: sorts its records into the order of the log, and makes its sums and
   * indexes. A second call changes nothing.
   */
  finish(day: string): Promise<void>;
  /**
   * Replaces all records of this data_dir on a day by these, which are in the order of the log, and
   * does the work of finish().
   */
  replaceDay(day: string, records: AsyncIterable<readonly UsageRecord[]>): Promise<void>;
  /**
   * Accepts a damaged closed day whose log is lost: from now on, the remaining records are read,
   * and cause no BooksFault. replaceDay() undoes this.
   */
  acceptDamage(day: string): Promise<void>;
  /** Sets the cursor without adding records. */
  setCursor(cursor: LogCursor): Promise<void>;
  /**
   * Yields the matching records day by day. A batch may be empty, which lets a cancelled reader
   * stop early.
   */
  records(filter: UsageFilter): AsyncIterable<readonly UsageRecord[]>;
  /**
   * Finds the latest records of a request id by an index, with `details` and `log`, in the order in
   * which they ended.
   */
  find(query: RequestQuery): Promise<readonly UsageRecord[]>;
  /** Whether a record is of this data_dir. Its closed days prove only its own records. */
  isOwn(record: UsageRecord): boolean;
  /** Adds up the matching records: one sum for each combination of the dimensions, unsorted. */
  sums<D extends Dimension>(filter: UsageFilter, by: readonly D[]): Promise<readonly SumBy<D>[]>;
  /** Frees connections and files. */
  close(): Promise<void>;
}

/**
 * Opens the database at an address, which may contain a password. `dataDir` may be relative. Throws
 * a ValidationError if a package is missing. Empty: usage.store can only be `file`.
 */
export const usageStoreSlot = slot<(address: string, dataDir: string) => UsageStore>("usageStore");
