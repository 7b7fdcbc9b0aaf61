// Settled requests of closed days that stand in no line which a head names. Anybody can compute a
// chain without a key, so a segment or a line that was inserted into a closed day is only told by
// that: the heads of that day have all requests that ended on it.
import { coveredLines, type HeadLine, recordLeaf, type SettledLine } from "../seals/index.ts";
import type { Findings } from "./findings.ts";
import type { SegmentHead } from "./verify-segments.ts";

/** Lines that heads should name. */
export interface UnnamedLines {
  take(settled: SettledLine, segment: SegmentHead): void;
  /** Reports those whose records no head has. `isSealed`: whether one has the record of a day. */
  report(isSealed: (leaf: Buffer, day: string) => boolean, findings: Findings): void;
}

interface UnnamedLine {
  readonly where: string;
  readonly id: string;
  readonly day: string;
  readonly leaf: Buffer;
}

/** Collects lines while segments are read. Of books that nobody changed there are few or none. */
export function collectUnnamedLines(heads: readonly HeadLine[]): UnnamedLines {
  const covered = coveredLines(heads);
  const firstDay = heads[0]?.head.day ?? "";
  const lastDay = heads.at(-1)?.head.day ?? "";
  const found: UnnamedLine[] = [];
  return {
    take({ record, line }, { name, first }) {
      const day = record.ended_at.slice(0, 10);
      if (day < firstDay || day > lastDay || line <= (covered.get(first) ?? 0)) return;
      const where = `spend/${name}, line ${line}`;
      found.push({ where, id: record.usage_id, day, leaf: recordLeaf(record) });
    },
    report(isSealed, findings) {
      for (const { where, id, day, leaf } of found) {
        if (isSealed(leaf, day)) continue;
        const what = `settles ${id}, which ended on ${day}, and no head has it`;
        findings.add(where, `${what}: it was inserted, or it came late, and the next head has it`);
      }
    },
  };
}
