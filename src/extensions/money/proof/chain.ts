// Line against line in days.jsonl: numbers, days, the hash of the line before, and signatures. Then
// what was kept elsewhere: lines of closed days, and heads that `seal head` made between two of them.
import { existsSync, readFileSync } from "node:fs";
import { asString, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import {
  createRecordAdder,
  dayAfter,
  hashOfLine,
  parseClosedDay,
  type ClosedDay,
} from "../usage/index.ts";
import { createCoverage, type Listing } from "./coverage.ts";
import { differencesFrom } from "./day-stream.ts";
import type { Findings } from "./findings.ts";
import type { RecordSource } from "./record-source.ts";
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
  let before: ClosedDay | undefined;
  texts.forEach((text, index) => {
    const where = `days.jsonl, line ${index + 1}`;
    const closed = parseClosedDay(text);
    if (!closed || JSON.stringify(parseJson(text)) !== text) {
      findings.add(where, "is no line of a closed day");
      return;
    }
    if (closed.number !== index + 1) findings.add(where, `has the number ${closed.number}`);
    const expected = index === 0 ? null : hashOfLine(texts[index - 1]!);
    if (closed.previous !== expected)
      findings.add(where, `does not follow line ${index}: one of them was changed`);
    if (before && closed.day !== dayAfter(before.day))
      findings.add(where, `is of ${closed.day}, and the line before of ${before.day}`);
    if (before?.signature !== undefined && closed.signature === undefined)
      findings.add(where, "is not signed, and the line before is");
    if (closed.signature !== undefined && !isSignedBy(text, key ?? closed.public_key ?? ""))
      findings.add(where, "its signature is wrong: it was changed, or signed by another key");
    key ??= closed.public_key;
    before = closed;
    days.push(closed);
  });
  if (publicKey !== undefined && before && before.signature === undefined)
    findings.add(`days.jsonl, line ${texts.length}`, "is not signed, and no line after it is");
  return { days, texts, publicKey: key };
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
export function compareKept(
  { texts, publicKey }: Chain,
  { kept }: Trust,
  findings: Findings,
): readonly KeptHead[] {
  return kept.flatMap((text) => {
    const head = parseClosedDay(text);
    if (!head) {
      findings.add(KEPT, `is no line of a closed day: ${text.slice(0, 80)}`);
      return [];
    }
    if (head.signature !== undefined && publicKey !== undefined && !isSignedBy(text, publicKey)) {
      findings.add(KEPT, `of ${head.day}: was changed, or signed by another key`);
      return [];
    }
    const before = texts[head.number - 2];
    if (head.number > 1 && (before === undefined || hashOfLine(before) !== head.previous))
      findings.add(
        `days.jsonl, line ${head.number - 1}`,
        `is ${before === undefined ? "gone" : "not the one before"} ${KEPT}, of ${head.made_at}`,
      );
    const isMoment = head.made_at.slice(0, 10) <= head.day;
    if (!isMoment && texts[head.number - 1] !== text)
      findings.add(
        `days.jsonl, line ${head.number}`,
        `is ${texts[head.number - 1] === undefined ? "gone" : "not the line"} that was kept`,
      );
    if (!isMoment) return [];
    const by = `${KEPT}, of ${head.made_at},`;
    return [{ head, listings: head.segments.map((entry) => ({ ...entry, by, day: head.day })) }];
  });
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
