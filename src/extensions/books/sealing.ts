// What an extension that seals the spend log does for the books. The books call it and know nothing
// of hashes and keys; without such an extension lines are written as they are.
import type { Clock } from "../../core/clock.ts";
import type { Config } from "../../core/config.ts";
import type { Diagnose } from "../../core/diagnose.ts";
import type { Extension } from "../../core/extension/extension.ts";
import type { StoreFault, UsageRecord } from "../usage-records/index.ts";

/** The chain of one segment. Each of its lines is sealed in the order of the file. */
export interface SegmentChain {
  /** Returns a line, which is a JSON object without its line end, with its seal in it. */
  seal(line: string): string;
  /** Every request of the segment is settled: no line follows. */
  close(): void;
}

/** What came of closing days. */
export interface ClosedDays {
  /** What the operator has to know. Empty: nothing went wrong. */
  readonly faults: readonly StoreFault[];
  /** Whether each day that is over has its head. Only then may old segments be deleted. */
  readonly isComplete: boolean;
}

/** A statement for a customer. */
export interface StatementToSeal {
  /** What the statement says, as JSON. */
  readonly bill: object;
  /** The records that it is made of. */
  readonly records: AsyncIterable<readonly UsageRecord[]>;
}

/** Seals the spend log of one data_dir for one process. */
export interface Sealing {
  /**
   * Finds the last hashes of segments that no process writes any more, for the first line of the
   * next segment of this process. Called after a recovery, before the first line.
   */
  lookBack(): void;
  /** Begins the chain of a segment of this process. `name` is asked for when it is needed. */
  begin(name: () => string): SegmentChain;
  /**
   * Goes on with the chain of a segment of a dead process, whose last whole line ends at byte
   * `end`. The lines of a segment that was not sealed stay unsealed.
   */
  resume(path: string, end: number): SegmentChain;
  /**
   * Makes the signed head of each day that is over. The caller holds the lock of the books and has
   * copied everything.
   */
  closeDays(): Promise<ClosedDays>;
  /**
   * The proof of a usage record whose day has its head, as JSON for a receipt. Null: the day has
   * none yet, the head does not have the record, or what proves it cannot be read.
   */
  proofOfRecord(record: UsageRecord): object | null;
  /** Prints a statement with its proof, which lists the records of days without a head as open. */
  printStatement(statement: StatementToSeal, print: (text: string) => Promise<void>): Promise<void>;
}

/** What a sealing is made from. */
export interface SealingOptions {
  /** Its `seals` section says whether the spend log is sealed. */
  readonly config: Config;
  /** The absolute path of data_dir. */
  readonly dataDir: string;
  /** Tells which days are over. */
  readonly clock: Clock;
  /** Tells the operator what cannot be sealed. */
  readonly diagnose: Diagnose;
  /** Whether the clock has gone on for a day without a jump, as Retention.isClockSteady says. */
  readonly isClockSteady: () => boolean;
}

/** An extension that can seal the spend log. */
export interface SealingExtension extends Extension {
  /** Undefined if the configuration does not want it. Changes nothing on the disk. */
  openSealing(options: SealingOptions): Sealing | undefined;
}

export const opensSealing = (extension: Extension): extension is SealingExtension =>
  "openSealing" in extension;
