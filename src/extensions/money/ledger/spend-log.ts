// The spend log: append-only segments `spend/YYYY-MM-DD.NNNN.jsonl`, each written by one process. A
// line is handed to the operating system before its request continues, so kill -9 loses nothing.
// The log is flushed to the disk once a second, so a power failure loses at most that second. While
// nothing can be written, as on a full disk, requests are refused before a provider is called, and
// replies in progress hold back their last byte until their line is written.
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { randomHex } from "../../../core/ids.ts";
import {
  ledgerUnavailable,
  type Ledger,
  type LedgerEntry,
  type Opening,
} from "../../../core/ledger/ledger.ts";
import { gatewayInstanceId } from "../../scale/data-files/index.ts";
import { dayOf, isoTime, settleLineOf, type OpenLine } from "../records/index.ts";
import { beginSegment, type Segment } from "./segment.ts";
import { nextNumber, segmentName } from "./segment-names.ts";
import { repeat, waitAtMost } from "./timers.ts";

/** How often the log is checked, flushed to the disk, rotated, and retried after a failed write. */
const TICK_MS = 1_000;
/** How long close() waits for requests that have just ended to be settled. */
const LAST_SETTLES_MS = 2_000;

/** Options of createSpendLog(). */
export interface SpendLogOptions {
  /** Holds the file gateway-id, and the folder `spend` of the segments, which start() makes. */
  readonly dataDir: string;
  /** Once a segment has this size, in bytes, the next one begins. */
  readonly segmentBytes: number;
  /** Dates requests and names segments by their day. */
  readonly clock: Clock;
  /** Receives each fault once, and its end. */
  readonly diagnose: Diagnose;
  /**
   * Returns the names of segments that closed days and usage records refer to, even if their files
   * are gone. Called when a segment begins: a name must not be used twice.
   */
  readonly namesTaken: () => readonly string[];
  /** Called when another process has taken over a segment. This process must end. */
  readonly fenced: (message: string) => void;
}

/** The spend log of a process. Every request that it opens must be settled, whatever happens. */
export interface SpendLog extends Ledger {
  /**
   * Begins the first segment. If that fails, requests are refused and the log tries again once a
   * second.
   */
  start(): Promise<void>;
  /**
   * Refuses new requests until the process is restarted, because a file of the books is damaged.
   * Requests in progress are still settled.
   */
  fail(reason: string): void;
  /** Waits for the last settle lines, for 2 s at most, and closes the segments. */
  close(): Promise<void>;
}

/** Creates a log. Nothing is written before it starts. */
export function createSpendLog(options: SpendLogOptions): SpendLog {
  const { dataDir, segmentBytes, clock, namesTaken } = options;
  const dir = join(dataDir, "spend");
  const fault = createFault(options);
  /** The last one takes new requests. Both lines of a request are in the same segment. */
  let segments: readonly Segment[] = [];
  let idPrefix = "";
  let stopTicking = (): void => undefined;
  let ticking: Promise<void> | undefined;

  /** Begins another segment if there is none, the last one is full, or a new day has begun. */
  async function rotate(): Promise<void> {
    const today = dayOf(clock.now());
    const last = segments.at(-1);
    if (last && last.size() < segmentBytes && last.name.startsWith(today)) return;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if (idPrefix === "") idPrefix = `sp_${gatewayInstanceId(dataDir).slice(0, 8)}`;
    let number = nextNumber(today, [...namesTaken(), ...readdirSync(dir)]);
    let segment: Segment | undefined;
    // Another process may claim the name first.
    for (; !segment; number += 1)
      segment = await beginSegment(join(dir, segmentName(today, number)), { clock, ...fault });
    segments = [...segments, segment];
  }

  async function closeSettled(): Promise<void> {
    const settled = segments.slice(0, -1).filter((segment) => segment.unsettled() === 0);
    segments = segments.filter((segment) => !settled.includes(segment));
    await Promise.all(settled.map((segment) => segment.close()));
  }

  /** Does `work` on every segment, even if it fails on some. Resolves with the errors. */
  async function errorsOf(work: (segment: Segment) => Promise<void>): Promise<unknown[]> {
    const results = await Promise.allSettled(segments.map(work));
    return results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
  }

  async function tick(): Promise<void> {
    try {
      const errors = await errorsOf(async (segment) => {
        await segment.sync();
        segment.assertOwned();
      });
      if (errors.length === 0) await rotate();
      errors.push(...(await errorsOf(async (segment) => segment.flush())));
      for (const error of errors) fault.failed(error);
      if (errors.length > 0) return;
      fault.recovered();
      await closeSettled();
    } catch (error) {
      fault.failed(error);
    }
  }

  return {
    async start() {
      await tick();
      stopTicking = repeat(clock, TICK_MS, () => {
        ticking ??= tick().finally(() => {
          ticking = undefined;
        });
      });
    },
    open(opening) {
      const segment = segments.at(-1);
      if (fault.current() !== null || !segment) throw ledgerUnavailable();
      return openEntry(segment, openLineOf(opening, idPrefix, clock));
    },
    fault: fault.current,
    fail: fault.refuse,
    async close() {
      stopTicking();
      await ticking;
      const allSettled = Promise.all(segments.map((segment) => segment.whenSettled()));
      await waitAtMost(clock, LAST_SETTLES_MS, allSettled);
      await Promise.all(segments.map((segment) => segment.close()));
      segments = [];
    },
  };
}

const openLineOf = (opening: Opening, idPrefix: string, clock: Clock): OpenLine => ({
  type: "open",
  spend_id: idPrefix + (opening.holdId ?? randomHex(12)),
  time: isoTime(clock.now()),
  gateway_request_id: opening.requestId,
  account: opening.account,
  key_id: opening.keyId,
  model_requested: opening.modelRequested,
  stream: opening.stream,
  hold: opening.hold,
});

/** Writes the open line of a request, and later its settle line. */
function openEntry(segment: Segment, open: OpenLine): LedgerEntry {
  const opening = segment.open(JSON.stringify(open));
  let settled: Promise<void> | undefined;
  return {
    opened: opening.written,
    settle(settlement) {
      settled ??= segment.settle(JSON.stringify(settleLineOf(open, settlement)));
      return opening.isRefused ? Promise.resolve() : settled;
    },
  };
}

/** The fault of the log, while it has one. Reports each fault, and its end, once. */
function createFault({ diagnose, fenced }: SpendLogOptions) {
  /** Why nothing can be written for now. "not started" is not reported. */
  let passing: string | null = "not started";
  /** Why requests are refused until the process is restarted. */
  let final: string | null = null;
  /** The errors of lost segments, which lost() has reported. */
  const losses = new Set<unknown>();
  let isReported = false;

  function report(detail: string): void {
    diagnose({ event: "spend_log_failed", level: "error", detail });
  }

  return {
    current: () => final ?? passing,
    lost(event: string, segment: string, loss: Error): void {
      const detail = loss.message;
      losses.add(loss);
      final ??= detail;
      diagnose({ event, level: "error", segment, detail });
      if (event === "spend_log_fenced") fenced(detail);
    },
    failed(error: unknown): Error {
      if (losses.has(error)) return ledgerUnavailable(error);
      passing = (error as Error).message;
      if (!isReported) report(`requests are refused until it can be written: ${passing}`);
      isReported = true;
      return ledgerUnavailable(error);
    },
    refuse(reason: string): void {
      if (final === null) report(reason);
      final ??= reason;
    },
    recovered(): void {
      if (isReported) diagnose({ event: "spend_log_recovered", level: "info" });
      isReported = false;
      passing = null;
    },
  };
}
