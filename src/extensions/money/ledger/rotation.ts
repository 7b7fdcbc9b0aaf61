// The segments that one process writes: the current one, and earlier ones with requests that are
// not settled yet. Both lines of a request stand in the same segment, so a segment alone shows what
// a dead process has left unsettled.
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { syncToDisk } from "../../data-files/index.ts";
import { gatewayInstanceId } from "./data-dir-ids.ts";
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

/** The segments of a process. */
export interface Rotation {
  /** The segment for new requests. Undefined before the first rotate(). */
  current(): Segment | undefined;
  /** All segments; the current one is the last. */
  all(): readonly Segment[];
  /** What the spend_ids of this data_dir begin with. Empty before the first rotate(). */
  idPrefix(): string;
  /** Begins another segment if there is none, the current one is full, or the day is another. */
  rotate(): Promise<void>;
  /** Closes earlier segments in which all is settled. */
  closeSettled(): void;
  /** Closes all segments. */
  closeAll(): void;
}

/** The segments of a log that has not started yet. Its methods throw what the system says. */
export function createRotation(options: SpendLogOptions, fault: LogFault): Rotation {
  const { dir, dataDir, segmentBytes, clock, namesTaken } = options;
  let segments: readonly Segment[] = [];
  let idPrefix = "";
  const today = (): string => new Date(clock.now()).toISOString().slice(0, 10);

  async function claimNext(): Promise<SegmentClaim> {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    if (idPrefix === "") idPrefix = `sp_${gatewayInstanceId(dataDir).slice(0, 8)}`;
    const day = today();
    const known = await namesTaken();
    const names = [...readdirSync(dir), ...known, ...segments.map(({ name }) => name)];
    for (let number = nextNumber(day, names); ; number += 1) {
      const claim = await claimSegment(join(dir, segmentName(day, number)));
      if (claim) return claim; // Otherwise another process was quicker.
    }
  }

  async function begin(): Promise<Segment> {
    const claim = await claimNext();
    let segment: Segment | undefined;
    try {
      segment = openSegment(claim, fault, clock);
      // A power failure must not leave lines on the disk in a file without a name.
      await syncToDisk(dir);
      return segment;
    } catch (error) {
      if (segment) segment.close();
      else claim.release();
      throw error;
    }
  }

  return {
    current: () => segments.at(-1),
    all: () => segments,
    idPrefix: () => idPrefix,
    async rotate() {
      const current = segments.at(-1);
      const isGoodEnough =
        current && current.size() < segmentBytes && current.name.startsWith(today());
      if (!isGoodEnough) segments = [...segments, await begin()];
    },
    closeSettled() {
      const settled = segments.slice(0, -1).filter((segment) => segment.unsettled() === 0);
      segments = segments.filter((segment) => !settled.includes(segment));
      for (const segment of settled) segment.close();
    },
    closeAll() {
      const all = segments;
      segments = [];
      for (const segment of all) segment.close();
    },
  };
}
