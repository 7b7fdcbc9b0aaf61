// Line against line in days.jsonl: numbers, days, the hash of the line before, and signatures. Then
// what was kept elsewhere: lines of closed days, and heads that `seal head` made between two of
// them.
import { existsSync, readFileSync } from "node:fs";
import { asString, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { sha256 } from "../../../core/hash.ts";
import { dayAfter } from "../records/index.ts";
import { createRecordAdder, differencesFrom } from "../usage/index.ts";
import { createCoverage, parseClosedDay, type ClosedDay, type Listing } from "../days/index.ts";
import type { Findings, RecordSource } from "../proof/index.ts";
import { isSignedBy } from "./sign.ts";

/** What the verifier believes, because it comes from elsewhere. */
export interface Trust {
  /** The public key, 64 hex digits. Undefined: that of the files. */
  readonly publicKey: string | undefined;
  /** Lines of closed days, and heads. */
  readonly kept: readonly string[];
}

/** The lines of days.jsonl, as far as they can be read. */
export interface Chain {
  readonly days: readonly ClosedDay[];
  /** The lines as they stand there. */
  readonly texts: readonly string[];
  /** The key of the last signed line, or the stated one. Undefined: nothing is signed. */
  readonly publicKey: string | undefined;
}

export function verifyChain(path: string, { publicKey }: Trust, findings: Findings): Chain {
  const texts = existsSync(path) ? readFileSync(path, "utf8").split("\n") : [""];
  if (texts.pop() !== "")
    findings.add(`days.jsonl, line ${texts.length + 1}`, "is cut short: its day counts as open");
  const days: ClosedDay[] = [];
  let key = publicKey;
  for (const [index, text] of texts.entries()) {
    const where = `days.jsonl, line ${index + 1}`;
    const closed = parseClosedDay(text);
    if (!closed || JSON.stringify(parseJson(text)) !== text) {
      findings.add(where, "is no line of a closed day");
      continue;
    }
    const link = { text, closed, key, before: days.at(-1), textBefore: texts[index - 1] };
    for (const fault of linkFaults(link, index + 1)) findings.add(where, fault);
    key ??= closed.public_key;
    days.push(closed);
  }
  if (publicKey !== undefined && days.length > 0 && days.at(-1)?.signature === undefined)
    findings.add(`days.jsonl, line ${texts.length}`, "is not signed, and no line after it is");
  return { days, texts, publicKey: key };
}

/** A line, and what it continues. */
interface Link {
  readonly text: string;
  readonly closed: ClosedDay;
  /** The line before. Undefined: it is the first one. */
  readonly textBefore: string | undefined;
  /** What the last line before says that can be read. Undefined: there is none. */
  readonly before: ClosedDay | undefined;
  /** The key of the lines before. Undefined: none is signed. */
  readonly key: string | undefined;
}

/** What is wrong with a line that should have a number. */
function linkFaults({ text, closed, textBefore, before, key }: Link, number: number): string[] {
  const faults: string[] = [];
  if (closed.number !== number) faults.push(`has the number ${closed.number}`);
  if (closed.previous !== (textBefore === undefined ? null : sha256(textBefore)))
    faults.push(`does not follow line ${number - 1}: one of them was changed or moved`);
  if (before && closed.day !== dayAfter(before.day))
    faults.push(`is of ${closed.day}, and the line before of ${before.day}`);
  const isSigned = closed.signature !== undefined;
  if (!isSigned && before?.signature !== undefined)
    faults.push("is not signed, and the line before is");
  if (isSigned && !isSignedBy(text, key ?? closed.public_key ?? ""))
    faults.push("its signature is wrong: it was changed, or signed by another key");
  return faults;
}

/** The lines in a file of what was kept: heads, or a log with lines that name them. */
export function keptLines(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const json = asObject(parseJson(line));
    const event = json["event"] === "day_closed" ? asString(json["line"]) : undefined;
    if (event !== undefined) return [event];
    return "event" in json || line.trim() === "" ? [] : [line];
  });
}

/** A head of a moment, between two closed days. */
export interface KeptHead {
  readonly head: ClosedDay;
  /** What it says of segments. */
  readonly listings: readonly Listing[];
}

const KEPT = "the head that was kept";

/** Compares what was kept with the lines of closed days. Returns the heads of moments. */
export function compareKept(chain: Chain, { kept }: Trust, findings: Findings): KeptHead[] {
  const heads: KeptHead[] = [];
  for (const text of kept) {
    const head = parseClosedDay(text);
    const key = chain.publicKey ?? head?.public_key ?? "";
    if (!head) findings.add(KEPT, `is no line of a closed day: ${text.slice(0, 80)}`);
    else if (head.signature !== undefined && !isSignedBy(text, key))
      findings.add(KEPT, `of ${head.day}: was changed, or signed by another key`);
    else if (isMoment(head)) {
      compareLine(chain, head.number - 1, head.previous, findings);
      const by = `${KEPT}, of ${head.made_at},`;
      const listings = head.segments.map((entry) => ({ ...entry, by, day: head.day }));
      heads.push({ head, listings });
    } else compareLine(chain, head.number, sha256(text), findings);
  }
  return heads;
}

/** A day is over when its line is made; `seal head` makes one before that. */
export const isMoment = ({ day, made_at }: ClosedDay): boolean => made_at.slice(0, 10) <= day;

/** The line with this number has this hash. */
function compareLine(
  { texts }: Chain,
  number: number,
  hash: string | null,
  findings: Findings,
): void {
  const text = texts[number - 1];
  if (hash === null || (text !== undefined && sha256(text) === hash)) return;
  const what = text === undefined ? "is gone" : "is another one";
  findings.add(`days.jsonl, line ${number}`, `${what}: a head that was kept has it`);
}

/** Compares the records that a head has: those booked after the day before it, up to its lines. */
export async function compareHeadRecords(
  { head }: KeptHead,
  days: readonly ClosedDay[],
  source: RecordSource,
  findings: Findings,
): Promise<void> {
  const before = days.filter(({ number }) => number < head.number);
  const coverage = createCoverage([...before, head]);
  const after = before.at(-1)?.day ?? "";
  const adder = createRecordAdder();
  for (const day of [...(await source.days())].filter((name) => name > after).sort())
    for await (const { lines } of source.linesOf(day))
      adder.add(
        lines.filter(({ record }) => {
          const { segment, line } = record?.log ?? { segment: "", line: Infinity };
          return (coverage.of(segment).at(-1)?.lines ?? 0) >= line;
        }),
      );
  const unequal = differencesFrom(head, adder.result());
  if (unequal.length > 0)
    findings.add(
      `the usage records after ${after || "the beginning"}`,
      `are not those of ${KEPT}, of ${head.made_at}: ${unequal.join(", ")}`,
    );
}
