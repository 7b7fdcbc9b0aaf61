// Settles the requests that a dead process left open in its segment. Their token counts were lost
// with the process, so an interrupted request costs nothing.
import { appendFileSync, truncateSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../../../core/clock.ts";
import type { Settlement } from "../../../core/ledger/ledger.ts";
import { NO_USAGE } from "../../../core/ledger/meter.ts";
import { acquireSocketLock, writeError } from "../../scale/data-files/index.ts";
import { readLines } from "../days/index.ts";
import { settleLineOf, type OpenLine } from "../records/index.ts";
import { socketOf } from "./segment-names.ts";

/**
 * A process that has lost its socket may write for CLAIM_CHECK_MS more. Waiting several times as
 * long allows for a busy machine.
 */
const TAKEOVER_MS = 50;

const INTERRUPTED: Omit<Settlement, "endedAt" | "currency"> = {
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

/** What the settle lines of interrupted requests need. */
export interface InterruptedOptions {
  /** The currency of the settle lines. */
  readonly currency: string;
  /** Its wall clock dates the end of the requests. */
  readonly clock: Clock;
}

/**
 * Cuts a segment at byte `end`, where its last whole line ends, and settles the requests `opens` as
 * interrupted. Resolves with true when the settle lines are written: whoever copies them flushes
 * them. Resolves with false, and changes nothing, if a process writes the segment or has written
 * whole lines after `end`.
 *
 * The caller holds the lock of the books, and has removed the socket of the dead process. A live
 * process that has lost its socket stops writing.
 */
export async function settleInterrupted(
  path: string,
  end: number,
  opens: readonly OpenLine[],
  { currency, clock }: InterruptedOptions,
): Promise<boolean> {
  const release = await acquireSocketLock(socketOf(path));
  if (!release) return false;
  try {
    await wait(TAKEOVER_MS); // Real time even in tests: the other process has its own clock.
    for await (const _batch of readLines(path, { from: end })) return false;
    const settlement = { ...INTERRUPTED, endedAt: clock.now(), currency };
    const lines = opens.map((open) => `${JSON.stringify(settleLineOf(open, settlement))}\n`);
    truncateSync(path, end);
    appendFileSync(path, lines.join(""));
    return true;
  } catch (error) {
    throw writeError(error as Error, path);
  } finally {
    release();
  }
}
