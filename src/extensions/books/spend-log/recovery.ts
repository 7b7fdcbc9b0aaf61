// Settles the requests that dead processes have left in the spend log.
import { appendFileSync, existsSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import type { Settlement } from "../../../core/ledger/ledger.ts";
import { NO_USAGE } from "../../../core/ledger/meter.ts";
import type { Sealing } from "../sealing.ts";
import { readSegment } from "./read-segment.ts";
import { settleRecord } from "./records.ts";
import { hasWriter } from "./segment-claim.ts";
import { claimFileOf, socketOf } from "./segment-names.ts";

/** The provider's figures died with the process, so an interrupted request costs nothing. */
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

/** What a recovery needs. */
export interface RecoveryOptions {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** The currency of the settle lines that are written. */
  readonly currency: string;
  /** Seals the lines that are written. Absent: they are not sealed. */
  readonly sealing?: Sealing | undefined;
  /** Its wall clock is when the interrupted requests end. */
  readonly clock: Clock;
  /** Told how many requests were settled, if there were any. */
  readonly diagnose: Diagnose;
}

/**
 * Cuts off torn last lines, and settles open requests of dead processes as "interrupted". The
 * caller holds the lock of the books, so that each request is settled once. If the caller dies
 * half-way, the next recovery goes on from there.
 */
export async function recover(options: RecoveryOptions): Promise<void> {
  const { spendDir, diagnose } = options;
  let requests = 0;
  for (const name of readdirSync(spendDir).filter((file) => file.endsWith(".open"))) {
    const segment = join(spendDir, name.replace(/open$/, "jsonl"));
    if (await hasWriter(segment)) continue;
    // A folder of that name is no segment. The sync and the audit report it.
    if (statSync(segment, { throwIfNoEntry: false })?.isFile() === false) continue;
    if (existsSync(segment)) requests += await settleAll(segment, options);
    rmSync(socketOf(segment), { force: true });
    rmSync(claimFileOf(segment), { force: true });
  }
  if (requests > 0)
    diagnose({
      event: "spend_recovered",
      level: "warn",
      requests,
      detail: "requests of a process that died were settled as interrupted",
    });
}

/** Resolves with the number of requests that were settled. */
async function settleAll(
  segment: string,
  { currency, sealing, clock }: RecoveryOptions,
): Promise<number> {
  const { unsettled, end } = await readSegment(segment);
  const chain = sealing?.resume(segment, end);
  const lines = [...unsettled.values()].map((open) => {
    const record = settleRecord(open, clock.now(), { ...INTERRUPTED, currency });
    const text = JSON.stringify(record);
    return `${chain ? chain.seal(text) : text}\n`;
  });
  truncateSync(segment, end);
  appendFileSync(segment, lines.join(""), { flush: true });
  return lines.length;
}
