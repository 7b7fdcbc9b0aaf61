// A segment of the spend log while its process writes it. Nothing is written once the file or the
// claim is another's.
import { basename } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { OpenRecord, SettleRecord } from "../records/index.ts";
import { createLineQueue } from "./line-queue.ts";
import { openText, settleText } from "./line-text.ts";
import { SegmentLost, type LogFault } from "./log-fault.ts";
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
  /** Writes the settle line. Resolves when the operating system has it, however long that takes. */
  settle(record: SettleRecord): Promise<void>;
}

/** A segment that this process writes. */
export interface Segment {
  /** Its file name. */
  readonly name: string;
  /** How many bytes this process has written to it. */
  size(): number;
  /** How many requests have an open line, written or waiting, and no settle line. */
  unsettled(): number;
  /** Resolves when no request is unsettled. */
  whenSettled(): Promise<void>;
  /** Adds the open line of a request. */
  open(record: OpenRecord): SpendEntry;
  /** Throws a SegmentLost if this process must not write to it any more. */
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
  const unsettled = createCountdown();
  let lookedAt = clock.monotonic();

  function look(): void {
    lookedAt = clock.monotonic();
    const loss = lossOf(name, file, claim);
    if (loss) throw loss;
  }

  function write(bytes: Buffer): number {
    const lost = fault.lost();
    if (lost) throw lost;
    if (clock.monotonic() - lookedAt > LOOK_MS) {
      lookedAt = clock.monotonic();
      if (!claim.isHeld()) look();
    }
    return file.append(bytes);
  }

  const queue = createLineQueue({ write, failed: fault.failed, settled: unsettled.subtract });
  const settle = (record: SettleRecord): Promise<void> => queue.settle(settleText(record));

  return {
    name,
    size: file.size,
    unsettled: unsettled.count,
    whenSettled: unsettled.whenZero,
    open(record) {
      unsettled.add();
      const openLine = openText(record);
      return { record, openLine, opened: queue.open(openLine), settle };
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
function lossOf(name: string, file: SegmentFile, claim: SegmentClaim): SegmentLost | undefined {
  const damage = file.damage();
  const isHeld = claim.isHeld();
  if (damage === undefined && isHeld) return undefined;
  // Whoever takes a segment over adds lines to it.
  const isFenced = !isHeld && (damage === undefined || damage === "changed");
  if (isFenced) return new SegmentLost(name, true, fencedMessage(name));
  return new SegmentLost(name, false, brokenMessage(name, damage ?? "changed"));
}

const fencedMessage = (name: string): string =>
  `another process took over ${name}: its socket is gone or another's. ` +
  "This process must end. Only one machine may use a data_dir";

const brokenMessage = (name: string, damage: string): string =>
  `${name} was ${damage} while the gateway wrote it: ` +
  "stop the gateway, restore data_dir, run `books rebuild`, start again";

/** A count, for which somebody may wait until it is 0. */
interface Countdown {
  count(): number;
  add(): void;
  subtract(by: number): void;
  whenZero(): Promise<void>;
}

function createCountdown(): Countdown {
  let count = 0;
  let waiting: (() => void)[] = [];
  return {
    count: () => count,
    add() {
      count += 1;
    },
    subtract(by) {
      count -= by;
      if (count > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    whenZero: () =>
      new Promise((resolve) => {
        if (count === 0) resolve();
        else waiting.push(resolve);
      }),
  };
}
