// Verifies a data_dir by its files alone, and by what comes from elsewhere: the public key, lines
// of closed days, and heads that `seal head` made between two of them.
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

export interface Trust {
  /** The public key, 64 hex digits. Undefined: that of the files. */
  readonly publicKey: string | undefined;
  /** Lines of closed days, and heads, as they were printed. */
  readonly kept: readonly string[];
}

/**
 * The lines in a file of what was kept: they alone, or a log of any program with events that name
 * them. A line of a log may begin with a time or the like. One that looks like such a line is
 * taken, be it damaged.
 */
export function keptTexts(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const json = line.slice(Math.max(0, line.indexOf("{")));
    const parsed = parseJson(json);
    if (parsed === undefined) return DAMAGED.test(json) ? [json] : [];
    const { event, line: named, root, segments } = asObject(parsed);
    if (event === "day_closed") return [asString(named) ?? json];
    const isHead = event === undefined && (root !== undefined || Array.isArray(segments));
    return isHead ? [json] : [];
  });
}

/** What is left of a head, or of an event with a line. */
const DAMAGED = /"segments":\s*\[|"event":\s*"day_closed"/;

/** Reads what was kept. `publicKey` undefined: nothing else is signed. */
export function readKept(
  { kept }: Trust,
  publicKey: string | undefined,
  findings: Findings,
): readonly DaysLine[] {
  return kept.flatMap((text) => {
    const closed = parseClosedDay(text);
    const key = publicKey ?? closed?.public_key ?? "";
    if (closed && (closed.signature === undefined || isSignedBy(text, key)))
      return [{ text, closed }];
    const what = closed
      ? `of ${closed.day}: was changed, or signed by another key`
      : `is no line of a closed day: ${text.slice(0, 80)}`;
    findings.add("the head that was kept", what);
    return [];
  });
}

/** Whether it is a head. The line of a day is made when the day is over. */
export const isHead = ({ day, made_at }: ClosedDay): boolean => made_at.slice(0, 10) <= day;

/** Verifies books with what comes from elsewhere. `lines`: what is proved, for people. */
export async function verifyBooks(books: BooksToProve, trust: Trust) {
  const findings = createFindings();
  const dayLines = readDayLines(books.dataDir, findings);
  const publicKey = checkSignatures(dayLines, trust.publicKey, findings);
  const kept = readKept(trust, publicKey, findings);
  for (const line of kept) compareKept(line, dayLines, findings);
  const heads = kept.map(({ closed }) => closed).filter(isHead);
  const { gone, ...proof } = await proveBooks(books, findings, dayLines, heads);
  const segments = [...proof.segments.values()].map((segment) => segment.proof);
  const days = proof.days?.map(dayResult) ?? null;
  // Settled requests that the projection had not copied when the verification began.
  const awaited = proof.days?.reduce((sum, { totals }) => sum + totals.awaited.records, 0) ?? 0;
  const [from = null, to = null] = [dayLines[0], dayLines.at(-1)].map((line) => line?.closed.day);
  const list = findings.list();
  const result = {
    ok: list.length === 0 && dayLines.length + kept.length > 0,
    public_key: publicKey ?? null,
    key_stated: trust.publicKey !== undefined,
    heads: { count: dayLines.length, from, to },
    segments,
    gone,
    days,
    awaited,
    findings: list,
  };
  const files = [...gone.map((file) => ({ ...file, proved: "gone", torn_bytes: 0 })), ...segments];
  const closed = `${dayLines.length} closed days, from ${from} to ${to}`;
  const lines = [
    `days.jsonl: ${dayLines.length > 0 ? closed : "no day was closed"}`,
    table(["file", "lines", "proved", "by", "torn_bytes"], files),
    days
      ? table(["day", "records", "by_line", "by_log"], days)
      : "usage records: there are none in files here, and nothing is said of others",
    `on the way into the usage records: ${awaited} requests`,
  ];
  return { result, lines };
}

/** `by_line`: days.jsonl has exactly these records. `by_log`: how many the spend log has so. */
const dayResult = ({ day, closed, lines, totals, isProved }: DayProof) => ({
  day,
  records: lines,
  by_line: isProved && closed !== undefined,
  by_log: totals.unchanged.records,
});

/** Returns the key of the signed lines, or the stated one. Undefined: nothing is signed. */
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

/** The line of a day that was kept stands in days.jsonl, and so does the line before a head. */
function compareKept(
  { text, closed }: DaysLine,
  lines: readonly DayLine[],
  findings: Findings,
): void {
  const number = isHead(closed) ? closed.number - 1 : closed.number;
  const hash = isHead(closed) ? closed.previous : sha256(text);
  const same = lines.find(({ line }) => line === number);
  if (hash === null || (same && sha256(same.text) === hash)) return;
  const what = same ? "is another one" : "is gone";
  findings.add(`days.jsonl, line ${number}`, `${what}: a head that was kept has it`);
}
