// What a process that died has left behind in the spend log, put right by whoever comes next.
import { appendFileSync, existsSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { Diagnose } from "../../core/diagnose.ts";
import { isTended } from "./claims.ts";
import { isLockHeld } from "./files.ts";
import { settleRecord } from "./records.ts";
import { readSegment } from "./segments.ts";
import { holderOf, unclosedOf } from "./spend-log.ts";
import type { Settlement } from "../../core/ledger/ledger.ts";
import { NO_USAGE } from "../../core/ledger/meter.ts";

const INTERRUPTED: Omit<Settlement, "currency"> = {
  status: "interrupted",
  httpStatus: null,
  errorCode: null,
  finishReason: null,
  attempts: [],
  firstTokenMs: null,
  modelServed: null,
  provider: null,
  usage: NO_USAGE.usage,
  usageSource: NO_USAGE.source,
  cost: "0",
};

/** The folder of the segments, and what a record of an interrupted request needs. */
interface Recovery {
  readonly dir: string;
  readonly currency: string;
  readonly now: () => number;
  readonly diagnose: Diagnose;
}

/** Whether the process that writes a segment is alive: its socket answers or, where somebody has deleted the socket, it has touched
 * the segment's mark of late. */
const hasWriter = async (segment: string): Promise<boolean> =>
  (await isLockHeld(holderOf(segment))) ||
  (!existsSync(holderOf(segment)) && isTended(unclosedOf(segment)));

/** Cuts off a torn last line, and settles open lines without a settle line as "interrupted": the provider's figures died with the
 * process, so they cost nothing. The caller holds the books, so that it happens once; if it dies half-way the next process goes
 * on where it stopped. */
export async function recover({ dir, currency, now, diagnose }: Recovery): Promise<void> {
  let requests = 0;
  for (const mark of readdirSync(dir).filter((name) => name.endsWith(".open"))) {
    const segment = join(dir, mark.replace(/open$/, "jsonl"));
    if (await hasWriter(segment)) continue;
    // A folder of that name is no segment: the sync and the audit tell it.
    if (statSync(segment, { throwIfNoEntry: false })?.isFile() === false) continue;
    if (existsSync(segment)) {
      const { unsettled, end } = await readSegment(segment);
      const lines = [...unsettled.values()].map(
        (open) => `${JSON.stringify(settleRecord(open, now(), { ...INTERRUPTED, currency }))}\n`,
      );
      truncateSync(segment, end);
      appendFileSync(segment, lines.join(""), { flush: true });
      requests += lines.length;
    }
    for (const path of [holderOf(segment), unclosedOf(segment)]) rmSync(path, { force: true });
  }
  if (requests > 0)
    diagnose({
      event: "spend_recovered",
      level: "warn",
      requests,
      detail: "requests of a process that died were settled as interrupted",
    });
}
