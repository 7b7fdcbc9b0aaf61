// Begins a segment: under a name that was never used, with the claim of this process beside it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { syncToDisk } from "../../data-files/index.ts";
import type { LogFault } from "./log-fault.ts";
import { openSegment, type Segment } from "./segment.ts";
import { claimSegment, type SegmentClaim } from "./segment-claim.ts";
import { nextNumber, segmentName } from "./segment-names.ts";

/** What a spend log is made from. */
export interface SpendLogOptions {
  /** The folder of the segments, in data_dir. It is made when the log starts. */
  readonly dir: string;
  /** The folder of the gateway-id. */
  readonly dataDir: string;
  /** A segment of this size, in bytes, is followed by another. */
  readonly segmentBytes: number;
  /** Tells the day, which stands in the names of segments. */
  readonly clock: Clock;
  /** Told of each fault once, and of its end. */
  readonly diagnose: Diagnose;
  /**
   * Resolves with the names of segments of which something is known, whether their files are there
   * or not. Asked when a segment is begun: a name is used once.
   */
  readonly namesTaken: () => Promise<readonly string[]>;
  /**
   * Another process has taken over a segment of this one, which must end. The message says so.
   * Absent: nobody is told, and nothing is written any more.
   */
  readonly fenced?: ((message: string) => void) | undefined;
}

/** Begins the next segment of a day. Throws what the system says. */
export async function beginSegment(
  day: string,
  options: SpendLogOptions,
  fault: LogFault,
): Promise<Segment> {
  const claim = await claimNext(day, options);
  try {
    // The claim's name in the folder must not reach the disk after the first lines.
    await syncToDisk(options.dir);
    return openSegment(claim, fault, options.clock);
  } catch (error) {
    claim.release();
    throw error;
  }
}

async function claimNext(day: string, { dir, namesTaken }: SpendLogOptions): Promise<SegmentClaim> {
  const taken = [...(await namesTaken()), ...readdirSync(dir)];
  for (let number = nextNumber(day, taken); ; number += 1) {
    const claim = await claimSegment(join(dir, segmentName(day, number)));
    if (claim) return claim; // Otherwise another process was quicker.
  }
}
