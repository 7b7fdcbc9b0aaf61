// Verifies a data_dir by its files alone, the public key, and what was kept elsewhere.
import { sha256 } from "../../../core/hash.ts";
import type { DaysLine } from "../days/index.ts";
import {
  createFindings,
  proveBooks,
  readDayLines,
  type BooksProof,
  type BooksToProve,
  type DayLine,
  type DayProof,
  type Findings,
} from "../proof/index.ts";
import { isHead, readKept, type Trust } from "./kept.ts";
import { isSignedBy } from "./sign.ts";

/** Verifies books with what comes from elsewhere. */
export async function verifyBooks(books: BooksToProve, trust: Trust) {
  const findings = createFindings();
  const dayLines = readDayLines(books.dataDir, findings);
  const publicKey = checkSignatures(dayLines, trust.publicKey, findings);
  const kept = readKept(trust, publicKey, findings);
  for (const line of kept) compareKept(line, dayLines, findings);
  const heads = kept.map(({ closed }) => closed).filter(isHead);
  const proof = await proveBooks(books, findings, dayLines, heads);
  const { segments, gone, days } = proof;
  const list = findings.list();
  const [from = null, to = null] = [dayLines[0], dayLines.at(-1)].map((line) => line?.closed.day);
  const result = {
    ok: list.length === 0 && dayLines.length + kept.length > 0,
    public_key: publicKey ?? null,
    key_stated: trust.publicKey !== undefined,
    heads: { count: dayLines.length, from, to },
    segments: [...segments.values()].map((segment) => segment.proof),
    gone,
    days: days?.map(dayResult) ?? null,
    // Settled requests that the projection had not copied when the verification began.
    awaited: days?.reduce((sum, { awaited }) => sum + awaited, 0) ?? 0,
    findings: list,
  };
  const closed =
    dayLines.length > 0
      ? `days.jsonl: ${dayLines.length} closed days, from ${from} to ${to}`
      : "days.jsonl: no day was closed";
  const way = `on the way into the usage records: ${result.awaited} requests`;
  const lines = [closed, ...proofLines(proof), ...(result.awaited > 0 ? [way] : [])];
  return { result, lines };
}

/** `by_line`: days.jsonl has exactly these records. `by_log`: how many the spend log has so. */
const dayResult = ({ day, closed, lines, unchanged, isProved }: DayProof) => ({
  day,
  records: lines,
  by_line: isProved && closed !== undefined,
  by_log: unchanged.records,
});

/** What is proved of segments and days, for people. */
function proofLines({ segments, gone, days }: BooksProof): readonly string[] {
  const lines = gone.map(
    ({ file, lines: count, by }) =>
      `${file}: gone; ${count} lines were proved by ${by} until it was deleted`,
  );
  for (const { proof } of segments.values()) {
    const { file, lines: count, proved, by, torn_bytes: torn } = proof;
    const state = by === null ? "none proved yet" : `${proved} proved by ${by}`;
    const end = `; its last line is torn: ${torn} bytes that count for nothing`;
    lines.push(`${file}: ${count} lines, ${state}${torn > 0 ? end : ""}`);
  }
  for (const { day, records, by_line, by_log } of days?.map(dayResult) ?? []) {
    const state = by_line
      ? "proved by the line of the day"
      : `${by_log} of them as the spend log has them`;
    lines.push(`usage records of ${day}: ${records}, ${state}`);
  }
  if (!days)
    lines.push("usage records: there are none in files here, and nothing is said of others");
  return lines;
}

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
