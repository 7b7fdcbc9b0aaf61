// All that is known of a request id: its usage records, its receipts, and its lines in the spend
// log, which name providers and their words.
import { join } from "node:path";
import { DAY_MS } from "../../config/fields.ts";
import type { Cancellation, UsageRecord } from "../usage-records/index.ts";
import type { Receipt, Receipts } from "../receipts/index.ts";
import {
  copiedBytes,
  parseSpendLine,
  readLines,
  segmentsIn,
  type BooksFiles,
  type SpendRecord,
} from "../books/index.ts";

/** How many usage records a trace has at most: those of the requests that ended last. */
const MAX_RECORDS = 1_000;
/** How many requests of the spend log a trace has at most. */
const MAX_ROWS = 500;

/** Which request to trace. */
export interface TraceOptions {
  /** The gateway_request_id. */
  readonly requestId: string;
  /**
   * Look only at the segments of the spend log of this day, `YYYY-MM-DD`, and the one before: they
   * have what was settled just now. Absent: look at the usage records, and at the segments of their
   * days.
   */
  readonly day?: string | undefined;
  /** Tells that nobody waits for the answer any more. */
  readonly cancel: Cancellation;
}

/** What is known of a request. */
export interface Trace {
  /** The request id that was asked about. */
  readonly gateway_request_id: string;
  /** Without details, in the order in which they ended. Empty where only a day was looked at. */
  readonly records: readonly UsageRecord[];
  /** What the account is told: of those requests, and of what is not copied yet. */
  readonly receipts: readonly Receipt[];
  /** The last line of each request with the id: what was settled, or else what was opened. */
  readonly spend: readonly SpendRecord[];
}

/** Where to look. */
export interface TraceSources {
  /** The usage records and the spend log. */
  readonly books: BooksFiles;
  /** Makes the receipts, also of what is not copied yet. */
  readonly receipts: Receipts;
}

/** Finds a request in the books. Throws `cancel.reason` if nobody waits any more. */
export async function traceRequest(
  { books, receipts }: TraceSources,
  options: TraceOptions,
): Promise<Trace> {
  const { requestId, day } = options;
  const query = { requestId, limit: MAX_RECORDS };
  const found = day === undefined ? await books.store.find(query) : [];
  const records = found.map(withoutDetails);
  const starts = day === undefined ? records.map(({ started_at }) => started_at) : [day];
  const spend = await spendLines(books, daysAround(starts), options);
  return {
    gateway_request_id: requestId,
    records,
    receipts: await receipts.find(query),
    spend,
  };
}

/** A record as other programs know it. */
export const withoutDetails = ({ details: _, ...record }: UsageRecord): UsageRecord => record;

/** These days and those before. A segment has the name of the day on which it was begun. */
const daysAround = (times: readonly string[]): ReadonlySet<string> =>
  new Set(
    times.flatMap((time) =>
      [0, DAY_MS].map((back) => new Date(Date.parse(time) - back).toISOString().slice(0, 10)),
    ),
  );

/**
 * Finds the lines of the request in the segments of some days, and in what has not been copied yet.
 */
async function spendLines(
  books: BooksFiles,
  days: ReadonlySet<string>,
  options: TraceOptions,
): Promise<readonly SpendRecord[]> {
  const { spendDir, reader, store } = books;
  const found = new Map<string, SpendRecord>();
  const copied = copiedBytes(spendDir, reader, await store.marks());
  for (const segment of segmentsIn(spendDir)) {
    const from = days.has(segment.slice(0, 10)) ? 0 : copied.get(segment);
    for await (const record of recordsIn(join(spendDir, segment), from, options)) {
      // A settle line takes the place of the open line.
      if (found.size < MAX_ROWS || found.has(record.spend_id)) found.set(record.spend_id, record);
    }
  }
  return [...found.values()];
}

async function* recordsIn(
  path: string,
  from: number | undefined,
  { requestId, cancel }: TraceOptions,
): AsyncGenerator<SpendRecord> {
  const wanted = `"gateway_request_id":${JSON.stringify(requestId)}`;
  for await (const { lines } of readLines(path, { from })) {
    if (cancel.aborted) throw cancel.reason;
    for (const line of lines.filter((text) => text.includes(wanted))) {
      const record = parseSpendLine(line);
      if (record) yield record;
    }
  }
}
