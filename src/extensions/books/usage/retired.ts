// The sums of segments of the spend log that were deleted after `spend.keep_days`, by month, in
// `spend/retired.json`. With them an audit still proves the usage records that were copied from
// those segments.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { failUnreadable, parseJsonFile, textIn } from "../../../config/json-file.ts";
import { readRegularFile, whyUnreadable } from "../../../config/regular-file.ts";
import { replaceFile } from "../../data-files/index.ts";
import { formatMoney } from "../../../core/ledger/price.ts";
import { AMOUNT, parseMoney } from "../../usage-records/index.ts";
import { fail, isObject } from "../../../core/schema/checker.ts";
import { asCount, asObject, asString } from "../../../core/schema/untrusted-json.ts";
import { readSegment } from "../spend-log/read-segment.ts";
import {
  addSums,
  createMonthSummer,
  NO_RECORDS,
  type MonthSums,
  type RecordSum,
} from "./record-sums.ts";
import { usageRecord } from "./usage-record.ts";

/** Room for the sums of some 800,000 segments. */
const MAX_BYTES = 256 * 1024 * 1024;

/** A segment that is about to be deleted. */
export interface RetiringSegment {
  /** Its file name in the folder of the segments. */
  readonly name: string;
  /** As Mark.identity. Empty: it has no whole line. */
  readonly identity: string;
  /** Bytes. */
  readonly size: number;
}

/** A segment that was deleted, or is about to be. */
interface RetiredSegment {
  /** Its file name. */
  readonly segment: string;
  /** Bytes. */
  readonly size: number;
  readonly months: MonthSums;
}

/** By the identities of the segments. */
type RetiredSegments = ReadonlyMap<string, RetiredSegment>;

const fileIn = (dir: string): string => join(dir, "retired.json");

/**
 * The sums of all deleted segments. Those whose identities are in `present` still have their lines,
 * and are left out. Throws a ValidationError if the file cannot be read.
 */
export function retiredMonths(dir: string, present: ReadonlySet<string>): MonthSums {
  const sums = new Map<string, RecordSum>();
  for (const [identity, { months }] of readRetired(dir)) {
    if (present.has(identity)) continue;
    for (const [month, sum] of months) sums.set(month, addSums(sums.get(month) ?? NO_RECORDS, sum));
  }
  return sums;
}

/**
 * Brings the sums of segments to the disk, before the segments are deleted. If the process dies
 * before it deletes them, the next one does the same once more. Of copies of one segment the
 * longest counts. Throws, with nothing changed, if the file can be neither read nor written. The
 * caller holds the lock of the books.
 */
export async function retire(dir: string, segments: readonly RetiringSegment[]): Promise<void> {
  if (segments.length === 0) return;
  const retired = new Map(readRetired(dir));
  for (const { name, identity, size } of segments) {
    if ((retired.get(identity)?.size ?? 0) > size) continue;
    const sums = createMonthSummer();
    await readSegment(join(dir, name), {
      to: size,
      settled: (settle) => sums.add(usageRecord(settle)),
    });
    retired.set(identity, { segment: name, size, months: sums.months() });
  }
  await replaceFile(fileIn(dir), textOfRetired(retired));
}

/** The text of the file: one segment a line. */
function textOfRetired(retired: RetiredSegments): string {
  const lines = [...retired].map(([identity, { segment, size, months }]) => {
    const sums = [...months].map(([month, { records, fingerprints, costs, from, to }]) => {
      const cost = Object.fromEntries([...costs].map(([name, pico]) => [name, formatMoney(pico)]));
      return [month, { records, fingerprints: String(fingerprints), cost, from, to }] as const;
    });
    const entry = { segment, size, months: Object.fromEntries(sums) };
    return `${JSON.stringify(identity)}:${JSON.stringify(entry)}`;
  });
  return `{\n${lines.join(",\n")}\n}\n`;
}

function readRetired(dir: string): RetiredSegments {
  const path = fileIn(dir);
  if (!existsSync(path)) return new Map();
  let bytes: Buffer;
  try {
    ({ bytes } = readRegularFile(path, MAX_BYTES));
  } catch (error) {
    return whyUnreadable(error) === "ENOENT" ? new Map() : failUnreadable(path, error);
  }
  const json = parseJsonFile(path, textIn(bytes));
  if (!isObject(json))
    return fail("invalid_value", `${path} does not hold the sums of retired segments`);
  const entries = Object.entries(json).map(([identity, value]) => {
    const segment = segmentIn(value);
    if (!segment)
      return fail(
        "invalid_value",
        `${path} has no readable sums of the segment ${JSON.stringify(identity)}`,
      );
    return [identity, segment] as const;
  });
  return new Map(entries);
}

/** Reads an entry of the file. Undefined if something in it is missing or malformed. */
function segmentIn(value: unknown): RetiredSegment | undefined {
  const { segment, size, months } = asObject(value);
  const name = asString(segment);
  const bytes = asCount(size);
  if (name === undefined || bytes === undefined) return undefined;
  const sums = new Map<string, RecordSum>();
  for (const [month, entry] of Object.entries(asObject(months))) {
    const sum = sumIn(entry);
    if (!sum) return undefined;
    sums.set(month, sum);
  }
  return { segment: name, size: bytes, months: sums };
}

function sumIn(value: unknown): RecordSum | undefined {
  const { records, fingerprints, cost, from, to } = asObject(value);
  const costs = Object.entries(asObject(cost)).map(([name, text]) => [name, String(text)] as const);
  const count = asCount(records);
  const isReadable =
    /^\d{1,20}$/.test(asString(fingerprints) ?? "") &&
    costs.every(([, text]) => AMOUNT.test(text)) &&
    typeof from === "string" &&
    typeof to === "string";
  if (!isReadable || count === undefined) return undefined;
  return {
    records: count,
    fingerprints: BigInt(String(fingerprints)),
    costs: new Map(costs.map(([name, text]) => [name, parseMoney(text)])),
    from,
    to,
  };
}
