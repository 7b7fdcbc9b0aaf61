// All that is known of a request id: its usage records, its receipts, and its lines in the spend
// log, which name providers and their words.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS } from "../../../config/fields.ts";
import type { Cancel } from "../../../core/http/cancel.ts";
import { receiptsOf, type Receipt } from "../receipts/index.ts";
import {
  parseSpendLine,
  withoutDetails,
  type SpendRecord,
  type UsageRecord,
} from "../records/index.ts";
import { readLines } from "../days/index.ts";
import type { SharedBooks } from "../usage/index.ts";

/** How many usage records a trace has at most: those of the requests that ended last. */
const MAX_RECORDS = 1_000;
/** How many requests of the spend log a trace has at most. */
const MAX_ROWS = 500;

/** Which request to trace. */
export interface TraceOptions {
  /** The gateway_request_id. */
  readonly requestId: string;
  /**
   * `YYYY-MM-DD`: without usage records, and with the lines of segments only that were begun on
   * this day or the one before. Absent: everything.
   */
  readonly day?: string | undefined;
  /** Tells that nobody waits for the answer any more. */
  readonly cancel: Pick<Cancel, "aborted" | "reason">;
}

/** What is known of a request. */
export interface Trace {
  /** The request id that was asked about. */
  readonly gateway_request_id: string;
  /** Without details, in the order in which they ended. */
  readonly records: readonly UsageRecord[];
  /** What the account is told of those requests. */
  readonly receipts: readonly Receipt[];
  /**
   * The last line of each request with the id: what was settled, in the order in which the requests
   * ended, and what is open. Lines of segments that are deleted are not there.
   */
  readonly spend: readonly SpendRecord[];
}

/**
 * Finds a request in the books, after a pass that copies what was settled just now. Throws
 * `cancel.reason` if nobody waits any more.
 */
export async function traceRequest(books: SharedBooks, options: TraceOptions): Promise<Trace> {
  const { requestId, day } = options;
  const { files, copyNow } = books;
  await copyNow();
  const found = await files.store.find({ requestId, limit: MAX_RECORDS });
  const settled = await settleLines(files.spendDir, found.filter(isAround(day)), options);
  // After a pass this process knows all that is open in any segment.
  const open = [...files.openSegments.values()]
    .flatMap((segment) => segment.unsettled())
    .filter((open) => open.gateway_request_id === requestId)
    .map(({ line: _line, ...record }) => record);
  return {
    gateway_request_id: requestId,
    records: day === undefined ? found.map(withoutDetails) : [],
    receipts: receiptsOf(files, found),
    spend: [...settled, ...open].slice(-MAX_ROWS),
  };
}

/** Whether a record is from a segment that was begun on a day or the one before. */
function isAround(day: string | undefined): (record: UsageRecord) => boolean {
  if (day === undefined) return () => true;
  const days = [0, DAY_MS].map((back) => new Date(Date.parse(day) - back).toISOString());
  return ({ log }) => days.some((start) => log?.segment.startsWith(start.slice(0, 10)));
}

/** The settle lines of records, as far as their segments are there. */
async function settleLines(
  spendDir: string,
  records: readonly UsageRecord[],
  { cancel }: TraceOptions,
): Promise<readonly SpendRecord[]> {
  const wanted = records.slice(-MAX_ROWS);
  const bySegment = new Map<string, Set<number>>();
  for (const { log } of wanted) {
    if (!log) continue;
    const numbers = bySegment.get(log.segment) ?? new Set();
    bySegment.set(log.segment, numbers.add(log.line));
  }
  const found = new Map<string, SpendRecord>();
  for (const [segment, numbers] of bySegment) {
    const path = join(spendDir, segment);
    if (!existsSync(path)) continue;
    for await (const text of linesAt(path, numbers, cancel)) {
      const line = parseSpendLine(text);
      if (line) found.set(line.spend_id, line);
    }
  }
  return wanted.flatMap(({ usage_id }) => found.get(usage_id) ?? []);
}

/** Yields the lines of a file that have these numbers. The first line has 1. */
async function* linesAt(
  path: string,
  numbers: ReadonlySet<number>,
  cancel: TraceOptions["cancel"],
): AsyncGenerator<string> {
  const last = Math.max(...numbers);
  let number = 0;
  for await (const { lines } of readLines(path)) {
    if (cancel.aborted) throw cancel.reason;
    for (const line of lines) {
      number += 1;
      if (numbers.has(number)) yield line;
    }
    if (number >= last) return;
  }
}
