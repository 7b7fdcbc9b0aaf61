// Verifies a data_dir by its files alone, and by trust anchors: the public key, and lines of closed
// days or heads that an auditor kept elsewhere.
import { table } from "../../../command-line/table.ts";
import { sha256 } from "../../../core/hash.ts";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { parseClosedDay, type ClosedDay, type DaysLine } from "../days/index.ts";
import {
  createFindings,
  proveBooks,
  readDayLines,
  type BooksToProve,
  type DayLine,
  type DayProof,
  type Findings,
} from "../proof/index.ts";
import { isSignedBy } from "./sign.ts";

/** What an auditor keeps away from the books, so that nobody can change it together with them. */
export interface TrustAnchors {
  /** The public key, 64 hex digits. Undefined: the files state it. */
  readonly publicKey: string | undefined;
  /** Lines of closed days and heads, as `seal head` and `day_closed` events printed them. */
  readonly keptLines: readonly string[];
}

/** Matches the remains of a damaged head or `day_closed` event. */
const DAMAGED = /"segments":\s*\[|"event":\s*"day_closed"/;

/**
 * Finds kept lines in a file: heads and lines of closed days, or a log that contains `day_closed`
 * events. A line of a log may begin with a time or the like. Damaged lines are returned too, so
 * that they cause a finding.
 */
export function findKeptLines(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const json = line.slice(Math.max(0, line.indexOf("{")));
    const parsed = parseJson(json);
    if (parsed === undefined) return DAMAGED.test(json) ? [json] : [];
    const { event, line: closedLine, root, segments } = asObject(parsed);
    if (event === "day_closed") return [asString(closedLine) ?? json];
    const isHead = event === undefined && (root !== undefined || Array.isArray(segments));
    return isHead ? [json] : [];
  });
}

/**
 * Parses kept lines, and reports those that are malformed or whose signature is wrong. `publicKey`
 * undefined: a line is checked with the key that it names.
 */
export function parseKeptLines(
  { keptLines }: TrustAnchors,
  publicKey: string | undefined,
  findings: Findings,
): readonly DaysLine[] {
  return keptLines.flatMap((text) => {
    const closed = parseClosedDay(text);
    const key = publicKey ?? closed?.public_key ?? "";
    if (closed && (closed.signature === undefined || isSignedBy(text, key)))
      return [{ text, closed }];
    const problem = closed
      ? `of ${closed.day}: was changed, or signed by another key`
      : `is not a closed day's line: ${text.slice(0, 80)}`;
    findings.add("the head that was kept", problem);
    return [];
  });
}

/** Whether a line is a head. The line of a closed day is made after the end of its day. */
export const isHead = ({ day, made_at }: ClosedDay): boolean => made_at.slice(0, 10) <= day;

/** Verifies books. Returns the result for programs, and its text lines for people. */
export async function verifyBooks(books: BooksToProve, anchors: TrustAnchors) {
  const findings = createFindings();
  const dayLines = readDayLines(books.dataDir, findings);
  const publicKey = checkSignatures(dayLines, anchors.publicKey, findings);
  const kept = parseKeptLines(anchors, publicKey, findings);
  for (const line of kept) checkKeptLine(line, dayLines, findings);
  const heads = kept.map(({ closed }) => closed).filter(isHead);
  const { goneSegments, ...proof } = await proveBooks(books, findings, dayLines, heads);
  const segments = [...proof.segments.values()].map((segment) => segment.proof);
  const days = proof.days?.map(dayResult) ?? null;
  const pending = proof.days?.reduce((sum, { totals }) => sum + totals.pending.records, 0) ?? 0;
  const [from = null, to = null] = [dayLines[0], dayLines.at(-1)].map((line) => line?.closed.day);
  const list = findings.list();
  const result = {
    ok: list.length === 0 && dayLines.length + kept.length > 0,
    public_key: publicKey ?? null,
    key_stated: anchors.publicKey !== undefined,
    heads: { count: dayLines.length, from, to },
    segments,
    gone: goneSegments,
    days,
    // Settled requests that the sync had not copied when the verification began.
    awaited: pending,
    findings: list,
  };
  const goneRows = goneSegments.map((row) => ({ ...row, proved: "gone", torn_bytes: 0 }));
  const closed = `${dayLines.length} closed days, from ${from} to ${to}`;
  const lines = [
    `days.jsonl: ${dayLines.length > 0 ? closed : "no day was closed"}`,
    table(["file", "lines", "proved", "by", "torn_bytes"], [...goneRows, ...segments]),
    days
      ? table(["day", "records", "by_line", "by_log"], days)
      : "usage records: there are none in files here; those in a database are not verified",
    `requests not yet in the usage records: ${pending}`,
  ];
  return { result, lines };
}

/**
 * `by_line`: whether days.jsonl proves all records of the day. `by_log`: how many of them match the
 * spend log.
 */
const dayResult = ({ day, closed, lines, totals, matchesLine }: DayProof) => ({
  day,
  records: lines,
  by_line: matchesLine && closed !== undefined,
  by_log: totals.same.records,
});

/**
 * Checks the signatures of days.jsonl by the stated key or, without one, by the key of the first
 * signed line. Returns that key. Undefined: nothing is signed.
 */
function checkSignatures(
  lines: readonly DayLine[],
  stated: string | undefined,
  findings: Findings,
): string | undefined {
  let key = stated;
  let wasSigned = false;
  for (const { text, closed, line } of lines) {
    const where = `days.jsonl, line ${line}`;
    const isSigned = closed.signature !== undefined;
    if (!isSigned && wasSigned) findings.add(where, "is not signed, and the line before is");
    if (isSigned && !isSignedBy(text, key ?? closed.public_key ?? ""))
      findings.add(where, "its signature is wrong: it was changed, or signed by another key");
    key ??= closed.public_key;
    wasSigned = isSigned;
  }
  const last = lines.at(-1);
  if (stated !== undefined && last && !wasSigned)
    findings.add(`days.jsonl, line ${last.line}`, "is not signed, and no line after it is");
  return key;
}

/** Checks that days.jsonl has a kept line or, if that is a head, the line before it. */
function checkKeptLine(
  { text, closed }: DaysLine,
  lines: readonly DayLine[],
  findings: Findings,
): void {
  const number = isHead(closed) ? closed.number - 1 : closed.number;
  const hash = isHead(closed) ? closed.previous : sha256(text);
  const found = lines.find(({ line }) => line === number);
  if (hash === null || (found && sha256(found.text) === hash)) return;
  const problem = found ? "is another one" : "is gone";
  findings.add(`days.jsonl, line ${number}`, `${problem}: a head that was kept has it`);
}
