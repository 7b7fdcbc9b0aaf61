// Reads a segment once: its chain, its settled requests, and whatever else a reader wants of its
// lines.
import { statSync } from "node:fs";
import { parseSpendLine, readLines, usageRecord } from "../../books/index.ts";
import type { SettleRecord } from "../../books/index.ts";
import type { UsageRecord } from "../../usage-records/index.ts";
import { splitSeal, tipsIn, type Tip } from "./chain.ts";
import { createChainCheck, type Finding } from "./check-chain.ts";
import { spendIdIn } from "./segment-ends.ts";

/** What a segment holds. */
export interface SegmentScan {
  /** The spend_id of the first line. "": there is no such line. */
  readonly first: string;
  /** Whole lines. */
  readonly lines: number;
  /** The number of the last line that has a seal. 0: none has. */
  readonly sealedLines: number;
  /** The seal of that line. Null: none has. */
  readonly seal: string | null;
  /** What the first line says of earlier segments. */
  readonly tips: readonly Tip[];
  /** Bytes after the last whole line. */
  readonly tornBytes: number;
}

/** A settled request, and where it stands. */
export interface SettledLine {
  readonly record: UsageRecord;
  /** The number of its line, from 1. */
  readonly line: number;
  /** Where the line ends in the file, in bytes. */
  readonly end: number;
  /** Whether that line has a seal. */
  readonly isSealed: boolean;
  /** The interrupted record whose place it takes, with the number of its line. Absent: none. */
  readonly instead?: { readonly record: UsageRecord; readonly line: number };
}

/** What a reader wants. Absent: nothing of it. */
export interface ScanVisitor {
  /** What is wrong with the chain. */
  readonly finding?: Finding;
  /** Each settled request once, by the line that counts. */
  readonly settled?: (settled: SettledLine) => void;
  /** Each seal, with the number of its line. */
  readonly sealed?: (seal: string, line: number) => void;
}

/** Scans the segment at a path. */
export async function scanSegment(path: string, visitor: ScanVisitor = {}): Promise<SegmentScan> {
  const { finding = () => undefined } = visitor;
  const chain = createChainCheck(finding);
  const requests = createRequests(visitor.settled);
  const seals = sealVisitor(visitor.sealed);
  let firstText: string | undefined;
  let end = 0;
  for await (const batch of readLines(path)) {
    for (const line of batch.lines) {
      firstText ??= line;
      end += Buffer.byteLength(line) + 1;
      chain.take(line);
      seals(line, chain.lines());
      requests.take(line, chain.lines(), end);
    }
    if (end !== batch.end) finding(chain.lines(), "or a line shortly before it is not UTF-8");
    end = batch.end;
  }
  chain.finish();
  requests.finish();
  return {
    first: spendIdIn(firstText ?? ""),
    lines: chain.lines(),
    sealedLines: chain.sealedLines(),
    seal: chain.seal(),
    tips: tipsIn(firstText ?? "") ?? [],
    tornBytes: statSync(path).size - end,
  };
}

/** What is done with each line for the visitor of seals. */
function sealVisitor(sealed: ScanVisitor["sealed"]): (line: string, number: number) => void {
  if (!sealed) return () => undefined;
  return (line, number) => {
    const seal = splitSeal(line)?.seal;
    if (seal !== undefined) sealed(seal, number);
  };
}

const isInterrupted = ({ status }: SettleRecord): boolean => status === "interrupted";

/**
 * Finds the line that counts of each request, as the usage sync does: that of the request's own
 * process wins over "interrupted".
 */
function createRequests(settled: ScanVisitor["settled"]) {
  if (!settled) return { take: () => undefined, finish: () => undefined };
  const final = new Set<string>();
  const interrupted = new Map<string, SettledLine>();
  return {
    take(text: string, line: number, end: number): void {
      if (!text.startsWith('{"type":"settle"')) return;
      const settle = parseSpendLine(text);
      if (settle?.type !== "settle" || final.has(settle.spend_id)) return;
      const { spend_id: id } = settle;
      const isSealed = splitSeal(text) !== undefined;
      const found = { record: usageRecord(settle), line, end, isSealed };
      const earlier = interrupted.get(id);
      if (isInterrupted(settle)) {
        interrupted.set(id, earlier ?? found);
        return;
      }
      interrupted.delete(id);
      final.add(id);
      settled(earlier ? { ...found, instead: earlier } : found);
    },
    finish(): void {
      for (const found of interrupted.values()) settled(found);
    },
  };
}
