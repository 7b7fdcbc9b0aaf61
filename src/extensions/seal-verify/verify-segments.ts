// Verifies the segments of a data_dir: each line's seal, what first lines say of earlier segments,
// and what heads say of all.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { segmentsIn } from "../books/index.ts";
import {
  firstLine,
  scanSegment,
  type SegmentScan,
  type SettledLine,
  spendIdIn,
  tipsIn,
} from "../seals/index.ts";
import type { Findings } from "./findings.ts";
import type { NamedLine } from "./verify-heads.ts";

/** What is proved of a segment. */
export interface SegmentProof {
  /** Its path in data_dir. */
  readonly file: string;
  readonly lines: number;
  /** Lines that continue each other from the first on. */
  readonly sealed: number;
  /** The head that names its last sealed line. Null: no head does. */
  readonly head: string | null;
  /** Lines at the end without a seal: seals were switched off, or the segment never had any. */
  readonly unsealed: number;
  /** Bytes of a last line that was cut short: its process died, or is writing it. */
  readonly torn_bytes: number;
  /** The name by which heads know the segment. Absent: its own, or no head names it. */
  readonly named_as?: string;
}

/** A segment that a head names and that is gone: deleted after spend.keep_days, or by somebody. */
export interface GoneSegment {
  /** Its path in data_dir. */
  readonly file: string;
  /** How many lines heads have of it. */
  readonly lines: number;
  /** The last head that names it. */
  readonly head: string;
}

/** What is proved of all segments. */
export interface SegmentProofs {
  readonly segments: readonly SegmentProof[];
  readonly gone: readonly GoneSegment[];
}

/** What is done with the settled requests of a segment. */
export type TakeSettled = (settled: SettledLine, segment: SegmentHead) => void;

/** A segment before its lines are read. */
export interface SegmentHead {
  readonly name: string;
  /** The spend_id of its first line. */
  readonly first: string;
}

/** A seal that the first line of another segment names. */
interface WantedTip {
  readonly where: string;
  readonly segment: string;
  isMet: boolean;
}

/** The segments of a folder, and what their first lines say of each other. */
interface Folder {
  readonly segments: readonly SegmentHead[];
  /** By the seal. */
  readonly wanted: ReadonlyMap<string, WantedTip>;
}

function lookInto(spendDir: string): Folder {
  const segments: SegmentHead[] = [];
  const wanted = new Map<string, WantedTip>();
  for (const name of existsSync(spendDir) ? segmentsIn(spendDir) : []) {
    // A sync that runs meanwhile deletes empty segments.
    if (!existsSync(join(spendDir, name))) continue;
    const line = firstLine(join(spendDir, name)) ?? "";
    segments.push({ name, first: spendIdIn(line) });
    for (const { seal, segment } of tipsIn(line) ?? [])
      wanted.set(seal, { where: `spend/${name}, line 1`, segment, isMet: false });
  }
  return { segments, wanted };
}

/** What segments are compared with, and where differences go. */
export interface SegmentSources {
  /** The folder of the segments. */
  readonly spendDir: string;
  /** Lines that heads name. */
  readonly named: readonly NamedLine[];
  readonly findings: Findings;
}

/** Verifies all segments of a folder. */
export async function verifySegments(
  sources: SegmentSources,
  settled: TakeSettled = () => undefined,
): Promise<SegmentProofs> {
  const { spendDir, named, findings } = sources;
  const { segments, wanted } = lookInto(spendDir);
  const proofs: SegmentProof[] = [];
  const lines = namedLines(named);
  for (const segment of segments) {
    if (!existsSync(join(spendDir, segment.name))) continue;
    const file = `spend/${segment.name}`;
    const mine = lines.get(segment.first) ?? [];
    const numbers = new Set(mine.map((each) => each.lines));
    const own = new Map<number, string>();
    const scan = await scanSegment(join(spendDir, segment.name), {
      finding: (line, what) => findings.add(`${file}, line ${line}`, what),
      settled: (each) => settled(each, segment),
      sealed(seal, line) {
        const tip = wanted.get(seal);
        if (tip) tip.isMet = true;
        if (numbers.has(line)) own.set(line, seal);
      },
    });
    compareWithHeads(file, { scan, named: mine, own }, findings);
    proofs.push(proofOf(segment.name, scan, mine));
  }
  reportCopies(segments, findings);
  reportMissing(segments, named, findings);
  reportUnmet(wanted, named, findings);
  return { segments: proofs, gone: goneSegments(segments, named) };
}

/** Reports segments that begin with the line of another. */
function reportCopies(segments: readonly SegmentHead[], findings: Findings): void {
  const names = new Map<string, string>();
  for (const { name, first } of segments) {
    const earlier = names.get(first);
    if (first !== "" && earlier !== undefined)
      findings.add(`spend/${name}`, `begins as spend/${earlier} does: one is a copy of the other`);
    names.set(first, earlier ?? name);
  }
}

function goneSegments(
  segments: readonly SegmentHead[],
  named: readonly NamedLine[],
): readonly GoneSegment[] {
  const present = new Set(segments.map(({ first }) => first));
  const gone = new Map<string, GoneSegment>();
  for (const { first, segment, lines, by, isClosed } of named)
    if (isClosed && !present.has(first))
      gone.set(first, { file: `spend/${segment}`, lines, head: by });
  return [...gone.values()];
}

/** Reports last lines that first lines of later segments name, and that are nowhere. */
function reportUnmet(
  wanted: Folder["wanted"],
  named: readonly NamedLine[],
  findings: Findings,
): void {
  const inHeads = new Set(named.map(({ seal }) => seal));
  for (const [seal, { where, segment, isMet }] of wanted) {
    if (isMet || inHeads.has(seal)) continue;
    const hash = `${seal.slice(0, 16)}...`;
    const what = `continues the line with the seal ${hash} of spend/${segment}, which is not there`;
    findings.add(where, `${what}: that segment was removed, cut or changed`);
  }
}

function namedLines(named: readonly NamedLine[]): ReadonlyMap<string, readonly NamedLine[]> {
  const lines = new Map<string, NamedLine[]>();
  for (const line of named) lines.set(line.first, [...(lines.get(line.first) ?? []), line]);
  return lines;
}

/** A segment that was read, and what heads say of it. */
export interface Compared {
  readonly scan: SegmentScan;
  readonly named: readonly NamedLine[];
  /** The seals of the lines that heads name. */
  readonly own: ReadonlyMap<number, string>;
}

/** Compares a segment with what heads say of its lines. */
export function compareWithHeads(
  file: string,
  { scan, named, own }: Compared,
  findings: Findings,
): void {
  for (const { lines, seal, by } of named) {
    if (lines > scan.lines && scan.tornBytes > 0)
      findings.add(
        `${file}, line ${scan.lines + 1}`,
        `is torn and the last one, and ${by} has ${lines}: the segment was cut or changed`,
      );
    else if (lines > scan.lines)
      findings.add(
        `${file}, line ${scan.lines}`,
        `is the last one, and ${by} has ${lines}: the segment was cut`,
      );
    else if (seal !== null && own.get(lines) !== seal)
      findings.add(
        `${file}, line ${lines}`,
        `is not the one that ${by} has: it or a line before it was changed`,
      );
  }
}

/** Reports segments of kept heads that are gone although no head of a closed day has them. */
function reportMissing(
  segments: readonly SegmentHead[],
  named: readonly NamedLine[],
  findings: Findings,
): void {
  const present = new Set(segments.map(({ first }) => first));
  const closed = new Map<string, number>();
  for (const { first, lines, isClosed } of named) if (isClosed) closed.set(first, lines);
  for (const { first, segment, lines, by } of named) {
    if (present.has(first) || (closed.get(first) ?? 0) >= lines) continue;
    findings.add(`spend/${segment}`, `is not there, and ${by} has ${lines} lines of it`);
  }
}

/** What is proved of a segment that was read. `name`: that of its file. */
export function proofOf(
  name: string,
  scan: SegmentScan,
  named: readonly NamedLine[],
): SegmentProof {
  const head = named.findLast(({ seal }) => seal !== null && seal === scan.seal);
  const knownAs = named.at(-1)?.segment ?? name;
  return {
    file: `spend/${name}`,
    lines: scan.lines,
    sealed: scan.sealedLines,
    head: head?.by ?? null,
    unsealed: scan.lines - scan.sealedLines,
    torn_bytes: scan.tornBytes,
    ...(knownAs !== name && { named_as: `spend/${knownAs}` }),
  };
}
