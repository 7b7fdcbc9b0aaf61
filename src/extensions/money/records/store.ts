// The contract of the stores that keep usage records: files of data_dir, or a database. The
// projection writes into one of them, and bills, budgets, receipts and proofs read from it.
import { slot } from "../../../core/extension/installer.ts";
import type { Dimension, SumBy } from "./sums.ts";
import type { UsageRecord } from "./usage-record.ts";

/** How far a segment of the spend log has been copied. */
export interface SegmentCursor {
  /**
   * The spend_id of its first line. Another file that has the name is another segment. Empty, with
   * 0 bytes: the segment is gone, and its records are not, so that the name stays taken.
   */
  readonly first: string;
  /** Bytes from the beginning, up to the end of a line. */
  readonly bytes: number;
  /** Lines in these bytes. */
  readonly lines: number;
  /** Requests that are opened in these bytes, and not settled. */
  readonly unsettled: number;
  /**
   * There are records, or lines of closed days, of lines beyond its end: an older copy of the log
   * was restored. Nothing more is copied or settled, for some of its requests have such a record.
   */
  readonly isCut?: true;
}

/** How far the spend log has been copied, by the file names of its segments. */
export type LogCursor = Readonly<Record<string, SegmentCursor>>;

/** A store outside of data_dir cannot be reached, or refuses. The message is for the operator. */
export class StoreError extends Error {}

/** A copy of the data_dir has moved the cursor: nothing is copied before a rebuild. */
export class CopiedElsewhere extends StoreError {}

/** Which records to read. A record must match all members that are there. */
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
  /** Empty: only records of which no provider began to answer. */
  readonly provider?: string | undefined;
  /** Leave out the records of other data_dirs whose gateways write into the same store. */
  readonly ownOnly?: boolean;
}

/** Which records to find by their request id. */
export interface RequestQuery {
  /** The gateway_request_id. */
  readonly requestId: string;
  /** Absent: those of every account. */
  readonly account?: string | undefined;
  /** The most records. */
  readonly limit: number;
}

/** Something about the books that the operator has to know, and that a pass works around. */
export interface StoreFault {
  /** The name of the diagnostic, in snake_case. */
  readonly event: string;
  /** What is wrong and what mends it, in a sentence. */
  readonly detail: string;
}

/** One line of a day. */
export interface UsageLine {
  /** As the projection has written it, without its line end. */
  readonly text: string;
  /** Undefined: it is no usage record. */
  readonly record: UsageRecord | undefined;
}

/** Some lines of a day that follow each other. */
export interface UsageBatch {
  /** In the order of the log, as far as they say it. */
  readonly lines: readonly UsageLine[];
  /** The number of the first of them. The first line of the day has 1. */
  readonly first: number;
  /** The lines as their file has them. Absent: they are not in a file. */
  readonly bytes?: Buffer;
}

/** Keeps usage records. All promises reject if they cannot be read or written. */
export interface UsageStore {
  /**
   * How far the log was copied. Empty: nothing was. Rejects with a BooksFault if records are not as
   * they were left, and with a CopiedElsewhere: nothing may be written before that is mended.
   */
  cursor(): Promise<LogCursor>;
  /** Looks for faults that keep nobody from writing. */
  inspect(): Promise<readonly StoreFault[]>;
  /**
   * Adds records and sets the cursor: both or neither. Records of a day that is open; no two have
   * the same usage_id, and none is there yet.
   */
  add(records: readonly UsageRecord[], cursor: LogCursor): Promise<void>;
  /** The days on which this data_dir has records, in their order. */
  days(): Promise<readonly string[]>;
  /**
   * The lines of this data_dir's records of a day in the order of the log: by segment, then by
   * line. In batches.
   */
  linesOf(day: string): AsyncIterable<UsageBatch>;
  /**
   * A day is over. Puts its records in the order of the log, and makes whatever answers questions
   * about them quickly. Doing it again changes nothing.
   */
  finish(day: string): Promise<void>;
  /**
   * Puts records, in the order of the log, in the place of all those of this data_dir on a day,
   * which is then finished.
   */
  replaceDay(day: string, records: AsyncIterable<readonly UsageRecord[]>): Promise<void>;
  /**
   * A closed day cannot be made again, because its lines are gone. What is left of its records is
   * read from now on, and keeps nobody from serving. replaceDay() takes this back.
   */
  giveUp(day: string): Promise<void>;
  /** Sets the cursor alone. */
  setCursor(cursor: LogCursor): Promise<void>;
  /**
   * Yields the matching records day by day, but for the first `skip` of them; absent: 0. A batch
   * may be empty, so that a reader whom nobody waits for can stop.
   */
  records(filter: UsageFilter, skip?: number): AsyncIterable<readonly UsageRecord[]>;
  /**
   * Finds the latest records of a request id by an index, with `details` and `log`, in the order in
   * which they ended.
   */
  find(query: RequestQuery): Promise<readonly UsageRecord[]>;
  /** Whether a record is of this data_dir. Its closed days vouch for no other record. */
  isOwn(record: UsageRecord): boolean;
  /** Adds up the matching records, one sum per combination of the dimensions, in no order. */
  sums<D extends Dimension>(filter: UsageFilter, by: readonly D[]): Promise<readonly SumBy<D>[]>;
  /** Frees connections and files. */
  close(): Promise<void>;
}

/**
 * Opens the store at an address outside of `dataDir`, which may be relative. The address may hold a
 * password. Throws a ValidationError if a package is missing. Empty: usage.store can only be
 * `file`.
 */
export const usageStoreSlot = slot<(address: string, dataDir: string) => UsageStore>("usageStore");
