// What the verifier believes, because it comes from elsewhere: the public key, lines of closed
// days, and heads that `seal head` made between two of them.
import { asString, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { parseClosedDay, type ClosedDay, type DaysLine } from "../days/index.ts";
import type { Findings } from "../proof/index.ts";
import { isSignedBy } from "./sign.ts";

export interface Trust {
  /** The public key, 64 hex digits. Undefined: that of the files. */
  readonly publicKey: string | undefined;
  /** Lines of closed days, and heads, as they were printed. */
  readonly kept: readonly string[];
}

/** What every verification finds, among other things. `seal verify --json` prints it. */
export interface Verified {
  /** Whether something is proved, and nothing was found wrong. */
  readonly ok: boolean;
  /** The public key, 64 hexadecimal digits. Null: nothing is signed. */
  readonly public_key: string | null;
  /** Whether the caller has stated the public key. If not, it is that of the files themselves. */
  readonly key_stated: boolean;
  /** Sentences for the auditor. */
  readonly findings: readonly string[];
}

/** The lines in a file of what was kept: they alone, or a log with events that name them. */
export function keptTexts(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const json = asObject(parseJson(line));
    const event = json["event"] === "day_closed" ? asString(json["line"]) : undefined;
    if (event !== undefined) return [event];
    return "event" in json || line.trim() === "" ? [] : [line];
  });
}

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
