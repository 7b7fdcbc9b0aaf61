// The segments that one process writes: the current one, and earlier ones with requests that are
// not settled yet. Both lines of a request stand in the same segment, so a segment alone shows what
// a dead process has left unsettled.
import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { syncToDisk } from "../../data-files/index.ts";
import type { Diagnose } from "../../../core/diagnose.ts";
import { gatewayInstanceId } from "../data-dir-ids.ts";
import type { Sealing } from "../sealing.ts";
import type { LogFault } from "./log-fault.ts";
import { openSegment, type Segment } from "./segment.ts";
import { claimSegment, type SegmentClaim } from "./segment-claim.ts";
import { nextNumber, segmentName } from "./segment-names.ts";

/** What a spend log is made from. */
export interface SpendLogOptions {
  /** The folder of the segments, in data_dir. It is made when the log starts. */
  readonly dir: string;
  /** A segment of this size, in bytes, is followed by another. */
  readonly segmentBytes: number;
  /** Absent: lines are not sealed. */
  readonly sealing?: Sealing | undefined;
  /** Tells the day, which stands in the names of segments. */
  readonly clock: Clock;
  /** Told of segments that somebody has deleted, replaced or overwritten. */
  readonly diagnose: Diagnose;
}

/** The segments of a process. */
export interface Rotation {
  /** The segment for new requests. Undefined before the first rotate(). */
  current(): Segment | undefined;
  /** All segments; the current one is the last. */
  all(): readonly Segment[];
  /** The gateway-id of the data_dir. Undefined before the first rotate(). */
  gatewayId(): string | undefined;
  /** Makes the folder, and the gateway-id as it was, if somebody has deleted them. */
  prepareFolder(): void;
  /** Begins another segment if there is none, the current one is full, or the day is another. */
  rotate(): Promise<void>;
  /** Puts a segment back that was deleted or replaced, and reports it. */
  restore(segment: Segment): Promise<void>;
  /** Shows that this process is alive, beside every segment that is there. */
  renewClaims(): Promise<void>;
  /** Closes earlier segments in which all is settled. */
  closeSettled(): Promise<void>;
  /** Hands over all segments, to be closed. None is left. */
  takeAll(): readonly Segment[];
}

/** The segments of a log that has not started yet. Its methods throw what the system says. */
export function createRotation(options: SpendLogOptions, fault: LogFault): Rotation {
  const { dir, segmentBytes, sealing, clock, diagnose } = options;
  let segments: readonly Segment[] = [];
  let gatewayId: string | undefined;
  const today = (): string => new Date(clock.now()).toISOString().slice(0, 10);

  function prepareFolder(): void {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    gatewayId = gatewayInstanceId(dirname(dir), gatewayId);
  }

  async function reserve(): Promise<SegmentClaim> {
    prepareFolder();
    const day = today();
    // The names of this process's segments stay taken, even if somebody has emptied the folder.
    const names = [...readdirSync(dir), ...segments.map((segment) => segment.name())];
    for (let number = nextNumber(day, names); ; number += 1) {
      const claim = await claimSegment(join(dir, segmentName(day, number)));
      if (claim) return claim; // Otherwise another process was quicker.
    }
  }

  async function begin(): Promise<Segment> {
    const claim = await reserve();
    try {
      return openSegment(claim, fault.failed, sealing);
    } catch (error) {
      claim.release();
      throw error;
    }
  }

  async function restore(segment: Segment): Promise<void> {
    if (!segment.isLost()) return;
    prepareFolder();
    const name = segment.name();
    const overwritten = segment.takeOverwritten();
    if (overwritten > 0) {
      diagnose(overwrittenEvent(name, overwritten));
      return;
    }
    const { bytes, lines, outcome } = await segment.restore(reserve);
    await syncToDisk(dir);
    const now = segment.name();
    const detail =
      `it was deleted or replaced while the gateway wrote it: ${outcome}. ` +
      "What other processes wrote, or earlier segments held, cannot be put back";
    diagnose({
      event: "spend_segment_restored",
      level: "error",
      segment: name,
      ...(now !== name && { now }),
      bytes,
      lines,
      detail,
    });
  }

  return {
    current: () => segments.at(-1),
    all: () => segments,
    gatewayId: () => gatewayId,
    prepareFolder,
    async rotate() {
      const current = segments.at(-1);
      const isGoodEnough =
        current && current.size() < segmentBytes && current.name().startsWith(today());
      if (!isGoodEnough) segments = [...segments, await begin()];
    },
    restore,
    async renewClaims() {
      for (const segment of segments) {
        if (segment.isLost()) continue;
        if (await segment.renewClaim()) diagnose(claimLostEvent(segment.name()));
      }
    },
    async closeSettled() {
      const settled = segments.slice(0, -1).filter((segment) => segment.unsettled() === 0);
      for (const segment of settled) {
        await restore(segment);
        segments = segments.filter((each) => each !== segment);
        segment.close();
      }
    },
    takeAll() {
      const all = segments;
      segments = [];
      return all;
    },
  };
}

const overwrittenEvent = (segment: string, bytes: number) => ({
  event: "spend_segment_overwritten",
  level: "error",
  segment,
  bytes,
  detail:
    "it was overwritten in its place while the gateway wrote it: " +
    "what was cut off cannot be put back. Stop the gateway before data_dir is restored",
});

const claimLostEvent = (segment: string) => ({
  event: "spend_log_claim_lost",
  level: "warn",
  segment,
  detail: "its .sock or .open file was deleted while the gateway wrote it; it is there again",
});
