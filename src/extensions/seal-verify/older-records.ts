// Records that say to be older than the seals, but were added to the files of months after a head
// was made. The first head has the bytes of all records that were there before, so what came later
// must stand in the spend log, or else it was inserted.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { segmentsIn } from "../books/index.ts";
import { type HeadLine, leafOf, recordLeaf, scanSegment } from "../seals/index.ts";
import type { Findings } from "./findings.ts";
import type { MonthBytes } from "./month-bytes.ts";

/** A record that nothing proves, as it stands in the file of a month. */
export interface UnprovedRecord {
  readonly text: string;
  /** The file, and the line. */
  readonly where: string;
  /** The day on which it ended. */
  readonly day: string;
  /** Where its line ends in the file, in bytes. */
  readonly end: number;
}

/** Records that are older than the seals. */
export interface OlderRecords {
  /** `bytes`: what heads have of its file. */
  take(record: UnprovedRecord, bytes: MonthBytes): void;
  /** Reports those that came after a head and that no segment has. */
  report(spendDir: string, findings: Findings): Promise<void>;
}

/** Begins to collect them. Of books that nobody changed there are few or none. */
export function collectOlderRecords(heads: readonly HeadLine[]): OlderRecords {
  const firstDay = heads[0]?.head.day ?? "";
  const hasMonths = heads.some(({ head }) => head.months.length > 0);
  /** Where they stand, by their leaves. */
  const places = new Map<string, string>();
  return {
    take({ text, where, day, end }, { proved, writtenAnew }) {
      const isLater = hasMonths && !writtenAnew && end > proved;
      if (isLater && day < firstDay) places.set(leafOf(text).toString("hex"), where);
    },
    async report(spendDir, findings) {
      if (places.size === 0) return; // The segments are not read once more for nothing.
      for (const name of existsSync(spendDir) ? segmentsIn(spendDir) : []) {
        // A sync that runs meanwhile deletes old segments.
        if (!existsSync(join(spendDir, name))) continue;
        await scanSegment(join(spendDir, name), {
          settled: ({ record }) => {
            places.delete(recordLeaf(record).toString("hex"));
          },
        });
      }
      for (const where of places.values()) findings.add(where, INSERTED);
    },
  };
}

const INSERTED =
  "is older than the seals, but came after a head was made, and no segment has it: it was inserted";
