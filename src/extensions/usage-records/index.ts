// The contract of the stores that keep usage records, from which billing and the audit read. The
// extension `books` has a store in files and copies settled requests into the store that is
// configured; other stores import only this.
import type { ConfigExtension } from "../../config/extension.ts";
import type { Extension } from "../../core/extension/extension.ts";
import type { Settlement } from "../../core/ledger/ledger.ts";
import type { RequestDetails } from "./details.ts";

export { AMOUNT, parseMoney } from "./amounts.ts";
export type { AttemptCharge, AttemptDetails, RequestDetails } from "./details.ts";

/**
 * One settled request. Other programs read these records, so names, order and meanings of the
 * columns stay.
 */
export interface UsageRecord {
  /** The spend_id of the spend log: `sp_` and 32 hex digits. No two records have the same. */
  readonly usage_id: string;
  /** The request id that the client sent or was given. Several requests may have the same. */
  readonly gateway_request_id: string;
  /** The account of the key. The record is on its bill. */
  readonly account: string;
  /** As Caller.keyId. */
  readonly key_id: string;
  /** The model that served the request or, if none did, the model or alias that was asked for. */
  readonly model: string;
  /** Null if no provider began to answer. */
  readonly provider: string | null;
  /** As Settlement.status. A sync replaces only a record that says "interrupted". */
  readonly status: Settlement["status"];
  /** Includes the tokens from the provider's cache. */
  readonly prompt_tokens: number;
  /** Reasoning tokens included. */
  readonly completion_tokens: number;
  /** prompt_tokens + completion_tokens. */
  readonly total_tokens: number;
  /** Part of prompt_tokens. */
  readonly prompt_cache_hit_tokens: number;
  /** Part of prompt_tokens: the rest of them. */
  readonly prompt_cache_miss_tokens: number;
  /** Part of completion_tokens. */
  readonly reasoning_tokens: number;
  /** A decimal number, exact, in `currency`. */
  readonly cost: string;
  /** Three capital letters, such as USD. */
  readonly currency: string;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly started_at: string;
  /** ISO 8601 in UTC, with milliseconds. The record belongs to the bill of this month. */
  readonly ended_at: string;
  /**
   * Part of prompt_cache_miss_tokens: what the provider wrote to its cache. 0 in records of earlier
   * versions, which did not count it.
   */
  readonly cache_write_tokens: number;
  /**
   * What a receipt says beside the columns. It is stored with the record, and only
   * UsageStore.find() yields it. Absent or null: an earlier version has stored the record.
   */
  readonly details?: RequestDetails | null | undefined;
}

/** The columns of a record, in the order in which files, tables and CSV have them. */
export const USAGE_COLUMNS = [
  "usage_id",
  "gateway_request_id",
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
  "cost",
  "currency",
  "started_at",
  "ended_at",
  "cache_write_tokens",
] as const satisfies readonly (keyof UsageRecord)[];

/** How far a segment of the spend log has been copied into the usage records. */
export interface Mark {
  /** The segment's file name when it was copied. */
  readonly segment: string;
  /** The segment's identity. Null: a version that knew segments by name only wrote the mark. */
  readonly identity: string | null;
  /** Bytes from the beginning, up to the end of a line. */
  readonly position: number;
  /** Hash of the last bytes before `position`. "" matches nothing. */
  readonly tail: string;
  /** Whether an "interrupted" line was copied. Only then can a later line correct a record. */
  readonly recovered: boolean;
}

/** Tells a reader of records to stop. */
export interface Cancellation {
  /** True once nobody waits for the records any more. */
  readonly aborted: boolean;
  /** What the reader then throws. */
  readonly reason?: unknown;
}

/** Which records to read. A record must match all members that are there. */
export interface UsageFilter {
  /** The month of ended_at: `YYYY-MM`, in UTC. */
  readonly month?: string | undefined;
  /** The day of ended_at: `YYYY-MM-DD`, in UTC. */
  readonly day?: string | undefined;
  /** The first day of ended_at: `YYYY-MM-DD`, in UTC. */
  readonly from?: string | undefined;
  /** The last day of ended_at: `YYYY-MM-DD`, in UTC. */
  readonly to?: string | undefined;
  /** As UsageRecord.account. */
  readonly account?: string | undefined;
  /** As UsageRecord.model. */
  readonly model?: string | undefined;
  /** As UsageRecord.key_id. */
  readonly keyId?: string | undefined;
  /** Empty: only records of which no provider began to answer. */
  readonly provider?: string | undefined;
  /** The gateway_request_id. */
  readonly requestId?: string | undefined;
  /** Leave out the records of other data_dirs whose gateways write into the same store. */
  readonly ownOnly?: boolean;
  /** How many matching records to pass over. Absent: 0. */
  readonly skip?: number | undefined;
  /** Absent: the reader goes on to the end. */
  readonly cancel?: Cancellation;
  /**
   * Gets a description of each line that is no usage record. Absent: the first such line fails the
   * reading.
   */
  readonly onUnreadable?: (line: string) => void;
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

/** The index by request ids does not reach all records yet. */
export class IndexNotReady extends Error {}

/** A filter that names a month. */
export interface MonthFilter extends UsageFilter {
  /** The month of ended_at: `YYYY-MM`, in UTC. */
  readonly month: string;
}

/**
 * What sums are grouped by. `day` is that of ended_at: `YYYY-MM-DD`, in UTC. `provider` is empty
 * where no provider began to answer.
 */
export type Dimension = "day" | "account" | "key_id" | "model" | "provider" | "currency";

/** What some records add up to. */
export interface Sum {
  /** How many records. */
  requests: number;
  /** Prompt tokens from the providers' caches. */
  prompt_cache_hit_tokens: number;
  /** All other prompt tokens. */
  prompt_cache_miss_tokens: number;
  /** Part of prompt_cache_miss_tokens. */
  cache_write_tokens: number;
  /** Reasoning tokens included. */
  completion_tokens: number;
  /** Part of completion_tokens. */
  reasoning_tokens: number;
  /** Exact, in pico-units of the currency. */
  cost: bigint;
}

/** A sum of the records that agree in the dimensions `D`. */
export type SumBy<D extends Dimension> = Sum & { readonly [dimension in D]: string };

/** What a sync adds to the store: all of it or nothing. */
export interface UsageChange {
  /** No two have the same usage_id. */
  readonly records: readonly UsageRecord[];
  /** The usage_ids of those records that replace one whose status is "interrupted". */
  readonly corrections: ReadonlySet<string>;
  /** Marks to add. */
  readonly put: readonly Mark[];
  /** Marks to remove. */
  readonly drop: readonly Mark[];
}

/** Something about the usage records that the operator has to know. */
export interface StoreFault {
  /** The name of the diagnostic, in snake_case. */
  readonly event: string;
  /** What is wrong and what mends it, in a sentence. */
  readonly detail: string;
  /** Whether nothing may be written before the fault is mended. */
  readonly blocks: boolean;
}

/** What a rebuild did to the records of this data_dir. */
export interface RebuildCounts {
  /** Records that were missing. */
  readonly added: number;
  /** Records that were not as the spend log has them. */
  readonly changed: number;
  /** Doubled records, and lines that are no records. */
  readonly removed: number;
  /** Records that were as the spend log has them. */
  readonly unchanged: number;
  /** Records that have no lines in the spend log (any more), and stayed as they were. */
  readonly left: number;
}

/** Enough of a record to look for it. */
export type RecordKey = Pick<UsageRecord, "usage_id" | "ended_at">;

/** Reads settled requests of the spend log as usage records, in batches. A call begins anew. */
export type ReadSettled = () => AsyncIterable<readonly UsageRecord[]>;

/**
 * Records and marks change together or not at all: each settled request is stored once, whatever
 * dies when.
 */
export interface UsageStore {
  /**
   * How far each segment was copied. A segment has several marks if its content was another when it
   * was copied.
   */
  marks(): Promise<readonly Mark[]>;
  /**
   * Looks for damage, and for other gateways that write where this one does. Resolves with all
   * faults.
   */
  inspect(): Promise<readonly StoreFault[]>;
  /** Resolves with the usage_ids of those records that are stored. */
  holds(records: readonly RecordKey[]): Promise<ReadonlySet<string>>;
  /** Makes a change. Rejects, with nothing changed, if it cannot be made. */
  commit(change: UsageChange): Promise<void>;
  /**
   * Makes the records of this data_dir what `readSettled` yields, and replaces its marks: all or
   * nothing. Records that `readSettled` does not yield stay. So do records that are settled
   * otherwise where `readSettled` only knows that the request was interrupted.
   */
  rebuild(readSettled: ReadSettled, marks: readonly Mark[]): Promise<RebuildCounts>;
  /**
   * Yields the matching records in batches, about in the order in which they ended. No batch is
   * empty.
   */
  records(filter: UsageFilter): AsyncIterable<readonly UsageRecord[]>;
  /**
   * Brings indexes up to date, or goes on with one that takes long. The caller holds the lock of
   * the books. Resolves with what went wrong.
   */
  maintain(): Promise<readonly StoreFault[]>;
  /**
   * Finds the latest records of a request id by an index, with their details, in the order in which
   * they ended. Rejects with an IndexNotReady while a large index is being made.
   */
  find(query: RequestQuery): Promise<readonly UsageRecord[]>;
  /**
   * Adds up the matching records of a month, one sum per combination of the dimensions, in no
   * particular order.
   */
  sums<D extends Dimension>(filter: MonthFilter, by: readonly D[]): Promise<readonly SumBy<D>[]>;
  /** Frees connections and files. */
  close(): Promise<void>;
}

/** What a store outside the data_dir is made from. */
export interface UsageStoreOptions {
  /** The address in `usage.store`, which may hold a password. */
  readonly address: string;
  /** As `data_dir` of the configuration has it, so it may be relative. */
  readonly dataDir: string;
  /** 32 hex digits that name the data_dir. Throws if data_dir can be neither read nor written. */
  readonly gatewayInstanceId: () => string;
  /**
   * Tells the data_dir from a copy of it, here or on another machine. Throws as gatewayInstanceId
   * does.
   */
  readonly place: () => string;
}

/** An extension that brings a store outside the data_dir. Its `store` states the addresses. */
export interface UsageStoreExtension extends ConfigExtension {
  /** Opens the store at an address. Throws a ValidationError if a package is missing. */
  openUsageStore(options: UsageStoreOptions): UsageStore;
}

export const opensUsageStore = (extension: Extension): extension is UsageStoreExtension =>
  "openUsageStore" in extension;
