// The heads of closed days, `seals/heads.jsonl`: one signed line a day. Each has the hash of the
// one before, so the last head stands for all of them.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import { isObject } from "../../../core/schema/checker.ts";
import { asCount, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { NO_SEAL } from "../chain/chain.ts";

/** A segment as far as it was written when a head was made. */
export interface HeadSegment {
  /** Its file name. */
  readonly segment: string;
  /** The spend_id of its first line, by which it is known under any name. */
  readonly first: string;
  /** Its lines up to the last one with a seal; of a segment that is not sealed, all. */
  readonly lines: number;
  /** The seal of the last line that has one. Null: the segment is not sealed. */
  readonly seal: string | null;
}

/** What was added to the file of a month since the head before. */
export interface HeadMonth {
  /** `YYYY-MM`. */
  readonly month: string;
  /** How often the file had been written anew. What was said of it before that is void. */
  readonly rewritten: number;
  /** The first byte. */
  readonly from: number;
  /** The first byte that is not part of it. */
  readonly to: number;
  /** The SHA-256 of these bytes, in hexadecimal digits. */
  readonly sha256: string;
}

/** A record of a day that had its head already. Of its content there is only a hash. */
export interface LateRecord {
  /** The day on which it ended. */
  readonly day: string;
  readonly usage_id: string;
  /** Its leaf in hexadecimal digits. */
  readonly leaf: string;
}

/** What is signed at the end of a day, or for an auditor in the middle of it. */
export interface Head {
  readonly type: "head";
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string;
  /** 1 for the first. Null: the day is not over, and the head stands in no file. */
  readonly number: number | null;
  /** ISO 8601, in UTC. */
  readonly made_at: string;
  /** The SHA-256 of the line of the head before. 64 zeros: there is none. */
  readonly previous: string;
  /** Segments that have more lines than the heads before say. */
  readonly segments: readonly HeadSegment[];
  /** How many usage records ended on the day. Null: the day is not over. */
  readonly records: number | null;
  /** The files of months, if the usage records are in files. */
  readonly months: readonly HeadMonth[];
  /** The root of their hash tree, in hexadecimal digits. Null: the day is not over. */
  readonly root: string | null;
  readonly late: readonly LateRecord[];
  /** Usage records of earlier days whose place others have taken since. */
  readonly replaced: readonly LateRecord[];
  /** The public key of the installation, as 64 hexadecimal digits. */
  readonly public_key: string;
}

/** A head, and its text. */
export interface HeadLine {
  readonly head: Head;
  /** The line without its end. */
  readonly text: string;
  /** The SHA-256 of the text. */
  readonly hash: string;
}

/** The folder of heads and trees. */
export const sealsDir = (dataDir: string): string => join(dataDir, "seals");
export const headsFile = (dir: string): string => join(dir, "heads.jsonl");

const DAY = /^\d{4}-\d\d-\d\d$/;

/** Reads the text of a head. Undefined if it is none. Its signature is not looked at. */
export function parseHead(text: string): HeadLine | undefined {
  const json = parseJson(text);
  if (!isObject(json)) return undefined;
  const { type, day, number, root, records } = json;
  const isOpen = number === null && records === null && root === null;
  const isClosed = isCount(number) && isCount(records) && isText(root);
  const isHead =
    type === "head" &&
    DAY.test(asString(day) ?? "") &&
    (isOpen || isClosed) &&
    hasTexts(json, ["previous", "made_at", "public_key"]) &&
    isListOf(json["segments"], isSegment) &&
    isListOf(json["months"], isMonth) &&
    isListOf(json["late"], isLate) &&
    isListOf(json["replaced"], isLate);
  return isHead ? { head: json as unknown as Head, text, hash: sha256(text) } : undefined;
}

type Json = Readonly<Record<string, unknown>>;

const isText = (value: unknown): boolean => typeof value === "string";
const isCount = (value: unknown): boolean => asCount(value) !== undefined;
const hasTexts = (json: Json, names: readonly string[]): boolean =>
  names.every((name) => isText(json[name]));
const isListOf = (value: unknown, isItem: (json: Json) => boolean): boolean =>
  Array.isArray(value) && value.every((item) => isItem(asObject(item)));

const isSegment = (json: Json): boolean =>
  hasTexts(json, ["segment", "first"]) &&
  isCount(json["lines"]) &&
  (json["seal"] === null || isText(json["seal"]));
const isMonth = (json: Json): boolean =>
  hasTexts(json, ["month", "sha256"]) &&
  [json["rewritten"], json["from"], json["to"]].every(isCount);
const isLate = (json: Json): boolean => hasTexts(json, ["day", "usage_id", "leaf"]);

/** The lines of the heads' file, whole or not, and none if there is no file. */
export function headTexts(dir: string): readonly string[] {
  const path = headsFile(dir);
  if (!existsSync(path)) return [];
  const texts = readFileSync(path, "utf8").split("\n");
  return texts.at(-1) === "" ? texts.slice(0, -1) : texts;
}

/** Reads all heads. Throws if a line is none, or does not continue the one before. */
export function readHeads(dir: string): readonly HeadLine[] {
  let previous = NO_SEAL;
  return headTexts(dir).map((text, index) => {
    const line = parseHead(text);
    if (line?.head.previous !== previous || line.head.number !== index + 1)
      throw new Error(
        `${headsFile(dir)}, line ${index + 1}, does not continue the heads before: ` +
          "'seal verify' says what is wrong",
      );
    previous = line.hash;
    return line;
  });
}
