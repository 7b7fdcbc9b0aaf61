// Verifies the heads of a data_dir, and heads that somebody has kept elsewhere.
import { asObject, asString, parseJson } from "../../core/schema/untrusted-json.ts";
import {
  hasSignature,
  type HeadLine,
  type HeadSegment,
  headTexts,
  NO_SEAL,
  parseHead,
} from "../seals/index.ts";
import type { Findings } from "./findings.ts";

/** What is wrong with a line that was kept, if it names no head. */
export const NO_HEAD = "is neither a head nor a line of the log that names one";

const OTHER_KEY = "was changed, or signed by another key: its signature is not that of the key";

/** A line of a segment that a head names. */
export interface NamedLine extends HeadSegment {
  /** Which head names it: "the head of 2026-11-22". */
  readonly by: string;
  /** Whether that head stands in the file of the heads. */
  readonly isClosed: boolean;
}

/** What a verification goes by. */
export interface Trust {
  /** The public key, 64 hexadecimal digits. Undefined: that of the heads themselves. */
  readonly publicKey: string | undefined;
  /** Heads that were kept elsewhere: their lines, or the lines of the log that name them. */
  readonly kept: readonly string[];
}

/** The heads of a data_dir, as far as they are good. */
export interface VerifiedHeads {
  readonly heads: readonly HeadLine[];
  /** The public key that the heads were verified with. Undefined: there is none. */
  readonly publicKey: string | undefined;
  /** Lines of segments that the heads name, those of kept heads included. */
  readonly named: readonly NamedLine[];
}

/** Verifies the heads in the folder of the seals. */
export function verifyHeads(dir: string, trust: Trust, findings: Findings): VerifiedHeads {
  const texts = headTexts(dir);
  const keptHeads = trust.kept.map(parseHead).filter((line) => line !== undefined);
  const publicKey = trust.publicKey ?? firstKey(texts) ?? keptHeads[0]?.head.public_key;
  const heads: HeadLine[] = [];
  let previous = NO_SEAL;
  texts.forEach((text, index) => {
    const where = `seals/heads.jsonl, line ${index + 1}`;
    const line = parseHead(text);
    if (!line) {
      findings.add(where, "is no head: it was changed, or cut short");
      previous = "";
      return;
    }
    if (!hasSignature(text, publicKey ?? "")) findings.add(where, OTHER_KEY);
    const continues = line.head.previous === previous && line.head.number === index + 1;
    if (!continues && previous !== "")
      findings.add(
        where,
        "does not continue the line before it: lines were changed, removed or swapped",
      );
    previous = line.hash;
    heads.push(line);
  });
  const named = heads.flatMap(linesNamedBy);
  for (const text of trust.kept) named.push(...compareKept(text, heads, publicKey, findings));
  return { heads, publicKey, named };
}

const firstKey = (texts: readonly string[]): string | undefined =>
  texts.map(parseHead).find((line) => line !== undefined)?.head.public_key;

const linesNamedBy = ({ head }: HeadLine): NamedLine[] =>
  head.segments.map((segment) => ({
    ...segment,
    by: `the head of ${head.day}`,
    isClosed: true,
  }));

/** Compares what was kept with the heads. Returns the lines that only it names. */
function compareKept(
  text: string,
  heads: readonly HeadLine[],
  publicKey: string | undefined,
  findings: Findings,
): readonly NamedLine[] {
  const where = "the head that was kept";
  const line = parseHead(text);
  if (!line) {
    compareHash(text, heads, findings);
    return [];
  }
  if (!hasSignature(text, publicKey ?? "")) {
    findings.add(where, OTHER_KEY);
    return [];
  }
  const { head, hash } = line;
  if (head.number !== null) {
    if (!heads.some((each) => each.hash === hash))
      findings.add(
        where,
        `of ${head.day} is not in seals/heads.jsonl: heads were changed or removed`,
      );
  } else if (head.previous !== NO_SEAL && !heads.some((each) => each.hash === head.previous)) {
    findings.add(
      where,
      "continues a head that is not in seals/heads.jsonl: heads were changed or removed",
    );
  }
  return linesOfKept(head);
}

function linesOfKept({ made_at, segments }: HeadLine["head"]): NamedLine[] {
  const by = `the head that was kept, of ${made_at},`;
  return segments.map((segment) => ({ ...segment, by, isClosed: false }));
}

/**
 * The lines of segments that kept heads name, where the heads of the books are not there. A line of
 * the log that names a head has none.
 */
export function keptLines({ publicKey, kept }: Trust, findings: Findings): readonly NamedLine[] {
  return kept.flatMap((text) => {
    const where = "the head that was kept";
    const line = parseHead(text);
    const isNamed = asObject(parseJson(text))["event"] === "seal_head";
    if (!line && !isNamed) findings.add(where, NO_HEAD);
    if (!line) return [];
    const isSigned = hasSignature(text, publicKey ?? line.head.public_key);
    if (!isSigned) findings.add(where, OTHER_KEY);
    return isSigned ? linesOfKept(line.head) : [];
  });
}

/** A line of the gateway's log names a head by its hash. */
function compareHash(text: string, heads: readonly HeadLine[], findings: Findings): void {
  const { event, head, day } = asObject(parseJson(text));
  const hash = asString(head);
  if (event !== "seal_head" || hash === undefined) findings.add("the head that was kept", NO_HEAD);
  else if (!heads.some((each) => each.hash === hash))
    findings.add(
      "the head that was kept",
      `of ${String(day)} is not in seals/heads.jsonl: heads were changed or removed`,
    );
}
