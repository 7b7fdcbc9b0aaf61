// The chains that one process writes: one for each of its segments, and one goes on where a dead
// process stopped.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { claimFileOf, segmentsIn, type SegmentChain } from "../../books/index.ts";
import { NO_SEAL, sealOf, splitSeal, tipsIn, withSeal, withTips, type Tip } from "./chain.ts";
import { firstLine, lastLine } from "./segment-ends.ts";

/** The chains of one process. */
export interface ChainWriter {
  /** As Sealing.lookBack. */
  lookBack(): void;
  /** As Sealing.begin. */
  begin(name: () => string): SegmentChain;
  /** As Sealing.resume. */
  resume(path: string, end: number): SegmentChain;
}

/** A segment that this process began. */
interface OwnSegment {
  readonly name: () => string;
  /** The seal of its last line. NO_SEAL: it has no line. */
  seal: string;
  isClosed: boolean;
}

/** Writes chains into the segments of a folder. */
export function createChainWriter(spendDir: string): ChainWriter {
  /** The last seals of segments that nobody writes any more, and that no first line has. */
  let found: readonly Tip[] = [];
  /** Segments of this process whose last seal no first line has for good. */
  let own: readonly OwnSegment[] = [];

  /** What the first line of this process's next segment names. */
  function takeTips(next: OwnSegment): readonly Tip[] {
    const earlier = own.filter((segment) => segment !== next && segment.seal !== NO_SEAL);
    const tips = [...found, ...earlier.map(({ name, seal }) => ({ segment: name(), seal }))];
    found = [];
    // A segment that still gets lines is named once more by the segment after the next.
    own = own.filter((segment) => segment === next || !segment.isClosed);
    return tips;
  }

  return {
    lookBack() {
      found = unnamedTips(spendDir);
    },
    begin(name) {
      const segment: OwnSegment = { name, seal: NO_SEAL, isClosed: false };
      own = [...own, segment];
      return {
        seal(line) {
          const body = segment.seal === NO_SEAL ? withTips(line, takeTips(segment)) : line;
          segment.seal = sealOf(segment.seal, body);
          return withSeal(body, segment.seal);
        },
        close() {
          segment.isClosed = true;
        },
      };
    },
    resume(path, end) {
      let last = splitSeal(lastLine(path, end) ?? "")?.seal;
      return {
        seal(line) {
          if (last === undefined) return line;
          last = sealOf(last, line);
          return withSeal(line, last);
        },
        close: () => undefined,
      };
    },
  };
}

/** The last seals of segments without a writer that the first line of no segment has. */
function unnamedTips(spendDir: string): readonly Tip[] {
  const named = new Set<string>();
  const tips: Tip[] = [];
  for (const name of existsSync(spendDir) ? segmentsIn(spendDir) : []) {
    const path = join(spendDir, name);
    const ends = endsOf(path);
    for (const { seal } of tipsIn(ends.first) ?? []) named.add(seal);
    const last = splitSeal(ends.last);
    if (last && !existsSync(claimFileOf(path))) tips.push({ segment: name, seal: last.seal });
  }
  return tips.filter(({ seal }) => !named.has(seal));
}

/**
 * The first and the last line of a segment. Empty for one that another process has deleted, and for
 * one that cannot be read, which the sync reports.
 */
function endsOf(path: string): { readonly first: string; readonly last: string } {
  try {
    return { first: firstLine(path) ?? "", last: lastLine(path) ?? "" };
  } catch {
    return { first: "", last: "" };
  }
}
