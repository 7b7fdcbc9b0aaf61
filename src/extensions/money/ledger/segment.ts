// A segment of the spend log while its process writes it. Nothing is written once the file or the
// claim is another's.
import { basename } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { openText, type OpenRecord } from "../records/index.ts";
import { createLineQueue } from "./line-queue.ts";
import type { LogFault, SegmentLoss } from "./log-fault.ts";
import type { SegmentClaim } from "./segment-claim.ts";
import { createSegmentFile, type SegmentFile } from "./segment-file.ts";

/**
 * A write looks at the claim if the last look was longer ago. To look costs more than to write, so
 * not every write does. Whoever takes a segment over waits for longer: TAKEOVER_MS.
 */
export const LOOK_MS = 10;

/** The two lines of one request. */
export interface SpendEntry {
  /** The open line, as an object. */
  readonly record: OpenRecord;
  /** The open line, without its line end. */
  readonly openLine: string;
  /**
   * Resolves when the operating system has the open line. Rejects with the 503 if it could not be
   * written.
   */
  readonly opened: Promise<void>;
  /**
   * Writes the settle line, whose end is left out. Resolves when the operating system has it,
   * however long that takes.
   */
  settle(line: string): Promise<void>;
}

/** A segment that this process writes. */
export interface Segment {
  /** Its file name. */
  readonly name: string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** How many requests have an open line, written or waiting, and no settle line. */
  unsettled(): number;
  /** Resolves when no request is unsettled. Only the last call counts. */
  whenSettled(): Promise<void>;
  /** Adds the open line of a request. */
  open(record: OpenRecord): SpendEntry;
  /** Throws if this process must not write to it any more. */
  look(): void;
  /** Writes what waits, and finds out whether more could be written. Throws if not. */
  retry(): void;
  /** Brings everything written until now to the disk. */
  sync(): Promise<void>;
  /**
   * Writes what waits, closes the file and gives up the claim. Replies that still wait for the disk
   * are let go.
   */
  close(): void;
}

/** Creates the segment that was claimed. Throws if something has its name. */
export function openSegment(claim: SegmentClaim, fault: LogFault, clock: Clock): Segment {
  const name = basename(claim.path);
  const file = createSegmentFile(claim.path);
  let lookedAt = clock.monotonic();

  function look(): void {
    lookedAt = clock.monotonic();
    const lost = fault.lost();
    if (lost) throw lost;
    const loss = lossOf(name, file, claim);
    if (loss) throw fault.lose(loss);
  }

  function check(): void {
    const lost = fault.lost();
    if (lost) throw lost;
    if (clock.monotonic() - lookedAt <= LOOK_MS) return;
    lookedAt = clock.monotonic();
    if (!claim.isHeld()) look();
  }

  const queue = createLineQueue(file.append, check, fault.failed);

  return {
    name,
    size: file.size,
    unsettled: queue.unsettled,
    whenSettled: queue.whenSettled,
    open(record) {
      const openLine = openText(record);
      return { record, openLine, opened: queue.open(openLine), settle: queue.settle };
    },
    look,
    retry() {
      queue.flush();
      file.probe();
    },
    sync: file.sync,
    close() {
      try {
        if (file.size() > 0) look();
        queue.flush();
        file.syncNow();
      } catch (error) {
        fault.failed(error);
        queue.releaseReplies();
      }
      file.close();
      claim.release();
    },
  };
}

/** Why a process must not write to its segment any more. Undefined: it may. */
function lossOf(name: string, file: SegmentFile, claim: SegmentClaim): SegmentLoss | undefined {
  const damage = file.damage();
  const isHeld = claim.isHeld();
  // Whoever takes a segment over adds lines to it.
  if (!isHeld && (damage === undefined || damage === "changed")) {
    const detail =
      `another process took over ${name}: its socket is gone or another's. ` +
      "This process must end. Only processes of one machine may use a data_dir";
    return { event: "spend_log_fenced", segment: name, detail };
  }
  if (damage === undefined) return undefined;
  const detail =
    `${name} was ${damage} while the gateway wrote it: ` +
    "stop the gateway, restore data_dir, run `books rebuild`, start again";
  return { event: "spend_segment_broken", segment: name, detail };
}
