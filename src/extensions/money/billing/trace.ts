// Finds everything about a request id: its usage records, its receipts, and its lines in the spend
// log, which name providers and quote their messages.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Cancel } from "../../../core/http/cancel.ts";
import { readLines } from "../days/index.ts";
import { receiptsOf } from "../receipts/index.ts";
import {
  parseSpendLine,
  withoutDetails,
  type SpendLine,
  type UsageRecord,
} from "../records/index.ts";
import type { SharedBooks } from "../usage/index.ts";

/** The most usage records in a trace: those of the requests that ended last. */
const MAX_RECORDS = 1_000;
/** The most lines of the spend log in a trace. */
const MAX_SPEND_LINES = 500;

/**
 * Runs a pass, then searches the books for a request id. `spend` has one line of each request: the
 * settle lines in the order in which the requests ended, then the open lines of those that run.
 * Lines of deleted segments are missing. Throws `cancel.reason` once the caller has cancelled.
 */
export async function traceRequest(
  { files, copyNow }: SharedBooks,
  requestId: string,
  cancel: Pick<Cancel, "aborted" | "reason">,
) {
  await copyNow();
  // After a pass this process knows the open requests of all segments.
  const unsettled = [...files.openSegments.values()]
    .flatMap((segment) => segment.unsettled())
    .filter((request) => request.gateway_request_id === requestId);
  const found = await files.store.find({ requestId, limit: MAX_RECORDS });
  const settled = await readSettleLines(files.spendDir, found.slice(-MAX_SPEND_LINES), cancel);
  // Another pass may have settled some of them in the meantime.
  const open = unsettled
    .filter(({ spend_id }) => !found.some(({ usage_id }) => usage_id === spend_id))
    .map(({ line: _line, ...record }) => record);
  return {
    gateway_request_id: requestId,
    records: found.map(withoutDetails),
    receipts: receiptsOf(files, found),
    spend: [...settled, ...open].slice(-MAX_SPEND_LINES),
  };
}

/** Reads the settle lines of records. Those of deleted segments are left out. */
async function readSettleLines(
  spendDir: string,
  records: readonly UsageRecord[],
  cancel: Pick<Cancel, "aborted" | "reason">,
): Promise<readonly SpendLine[]> {
  const settled = new Map<string, SpendLine>();
  for (const segment of new Set(records.map(({ log }) => log!.segment))) {
    const path = join(spendDir, segment);
    if (!existsSync(path)) continue;
    const ofSegment = records.filter(({ log }) => log!.segment === segment);
    const numbers = new Set(ofSegment.map(({ log }) => log!.line));
    let last = 0;
    for await (const { lines } of readLines(path)) {
      if (cancel.aborted) throw cancel.reason;
      const before = last;
      last += lines.length;
      const found = lines.filter((_, at) => numbers.has(before + at + 1));
      for (const line of found.flatMap((text) => parseSpendLine(text) ?? []))
        settled.set(line.spend_id, line);
    }
  }
  return records.flatMap(({ usage_id }) => settled.get(usage_id) ?? []);
}
