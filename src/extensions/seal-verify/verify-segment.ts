// Verifies the chain of one segment, of which nothing else is there, and compares it with heads
// that were kept elsewhere.
import { basename } from "node:path";
import { firstLine, scanSegment, spendIdIn } from "../seals/index.ts";
import { createFindings } from "./findings.ts";
import { keptLines, type Trust } from "./verify-heads.ts";
import { compareWithHeads, proofOf, type SegmentProof } from "./verify-segments.ts";

/** What was found of a segment. `seal verify --json` prints it. */
export interface SegmentVerification {
  /** Whether the segment is sealed, and nothing was found wrong. */
  readonly ok: boolean;
  /** The one segment. */
  readonly segments: readonly [SegmentProof];
  /** The kept heads that name the segment, in words. */
  readonly compared: readonly string[];
  readonly findings: readonly string[];
}

/** Verifies the segment at a path. */
export async function verifySegment(path: string, trust: Trust): Promise<SegmentVerification> {
  const findings = createFindings();
  const first = spendIdIn(firstLine(path) ?? "");
  const named = keptLines(trust, findings).filter((line) => line.first === first);
  const numbers = new Set(named.map(({ lines }) => lines));
  const own = new Map<number, string>();
  const scan = await scanSegment(path, {
    finding: (line, what) => findings.add(`${path}, line ${line}`, what),
    sealed(seal, line) {
      if (numbers.has(line)) own.set(line, seal);
    },
  });
  compareWithHeads(path, { scan, named, own }, findings);
  const proof = { ...proofOf(basename(path), scan, named), file: path };
  const list = findings.list();
  return {
    ok: list.length === 0 && scan.sealedLines > 0,
    segments: [proof],
    compared: named.map(({ by }) => by),
    findings: list,
  };
}
