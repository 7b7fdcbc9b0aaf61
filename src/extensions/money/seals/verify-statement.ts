// Verifies a sealed statement by itself: its signature, its sums, and that the line of each closed
// day proves the day's records.
import { sha256 } from "../../../core/hash.ts";
import { asArray, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import {
  addToSum,
  createSummer,
  emptySum,
  parseUsageLine,
  printedSum,
  type Sum,
  type UsageRecord,
} from "../records/index.ts";
import { leafOf, parseClosedDay, rootFrom, type ClosedDay } from "../days/index.ts";
import { createFindings, type Findings } from "../proof/index.ts";
import { isSignedBy } from "./sign.ts";
import { isHead, parseKeptLines, type TrustAnchors } from "./verify.ts";

/** A JSON object whose members are unchecked. */
type JsonObject = Readonly<Record<string, unknown>>;

/** A day of a statement. */
interface StatementDay {
  readonly day: string;
  /** Its line in days.jsonl. Undefined: the day was open when the statement was made. */
  readonly line: string | undefined;
  /** What the line says. Undefined: there is none, or it cannot be read. */
  readonly closed: ClosedDay | undefined;
  readonly records: readonly UsageRecord[];
}

/** Whether a text looks like a sealed statement, even a damaged one. */
export const isStatement = (text: string): boolean => text.startsWith('{"type":"statement"');

/** Verifies a statement. `text`: the content of its file. */
export function verifyStatement(text: string, anchors: TrustAnchors) {
  const findings = createFindings();
  const line = text.replace(/\n$/, "");
  const statement = asObject(parseJson(line));
  const bill = asObject(statement["bill"]);
  const publicKey = anchors.publicKey ?? asString(statement["public_key"]) ?? "";
  if (!isSignedBy(line, publicKey))
    findings.add("the statement", "was changed, or signed by another key: its signature is wrong");
  const days = asArray(statement["days"]).map((day) => readDay(asObject(day), publicKey, findings));
  checkLines(days, findings);
  const comparedDays: string[] = [];
  for (const { text: keptText, closed } of parseKeptLines(anchors, publicKey, findings)) {
    const day = days.find((each) => each.day === closed.day);
    if (isHead(closed) || !day) continue;
    comparedDays.push(day.day);
    if (day.line !== keptText)
      findings.add(`the line of ${day.day} in the statement`, "is not the one that was kept");
  }
  const records = days.flatMap((day) => day.records);
  checkRecords(bill, days, findings);
  checkSums(bill, records, findings);
  // Only the signature of the statement proves records of days without a signed line.
  const bySignature = days.filter(({ closed }) => closed?.signature === undefined);
  const notProved = bySignature.flatMap((day) => day.records).length;
  const list = findings.list();
  const result = {
    ok: list.length === 0,
    public_key: publicKey,
    key_stated: anchors.publicKey !== undefined,
    account: String(bill["account"]),
    month: String(bill["month"]),
    records: records.length,
    // Records that the signed lines of closed days prove.
    by_head: records.length - notProved,
    not_proved: notProved,
    // The days whose lines were compared with kept lines.
    compared: comparedDays,
    findings: list,
  };
  const lines = [
    `statement of ${result.account} for ${result.month}: ${result.records} records: ` +
      `${result.by_head} proved by signed lines of closed days, ` +
      `${notProved} by the signature of the statement alone`,
    `compared with heads that were kept: ${comparedDays.join(", ") || "none"}`,
  ];
  return { result, lines };
}

/** Reads a day. Reports a closed day if its line was changed or does not prove its records. */
function readDay(json: JsonObject, publicKey: string, findings: Findings): StatementDay {
  const day = String(json["day"]);
  const line = asString(json["line"]);
  const entries = asArray(json["records"])
    .map((entry) => asArray(entry))
    .map(([index, text]) => ({ index: Number(index), text: String(text) }));
  const records = entries.flatMap(({ text }) => parseUsageLine(text) ?? []);
  if (records.length < entries.length)
    findings.add(`the records of ${day}`, "have a line that is not a usage record");
  if (line === undefined) return { day, line, closed: undefined, records };
  const closed = parseClosedDay(line);
  if (closed?.day !== day || (closed.signature !== undefined && !isSignedBy(line, publicKey)))
    findings.add(`the line of ${day}`, "was changed, or signed by another key");
  const leaves = new Map(entries.map(({ index, text }) => [index, leafOf(text)]));
  const root = rootFrom(closed?.records ?? 0, leaves, asArray(json["hashes"]).map(String));
  if (leaves.size !== entries.length || (leaves.size > 0 && root !== closed?.root))
    findings.add(`the records of ${day}`, "are not those that the line of that day proves");
  return { day, line, closed, records };
}

/**
 * Checks that each line names the one before it, unless days without records are between them, and
 * that lines without a signature are older than the seals: none follows a signed one.
 */
function checkLines(days: readonly StatementDay[], findings: Findings): void {
  let last: StatementDay | undefined;
  for (const each of days) {
    const { day, closed } = each;
    if (!closed) continue;
    const isNext = closed.number === (last?.closed?.number ?? NaN) + 1;
    if (isNext && closed.previous !== sha256(last?.line ?? ""))
      findings.add(`the line of ${day}`, `has another line before it than that of ${last?.day}`);
    if (closed.signature === undefined && last?.closed?.signature !== undefined)
      findings.add(`the line of ${day}`, `is not signed, and that of ${last.day} is`);
    last = each;
  }
}

/** Checks that each record is of the bill and of its day, and that none is there twice. */
function checkRecords(bill: JsonObject, days: readonly StatementDay[], findings: Findings): void {
  const seen = new Set<string>();
  for (const { day, records } of days)
    for (const record of records) {
      const where = `record ${record.usage_id}`;
      if (seen.has(record.usage_id)) findings.add(where, "is in the statement twice");
      seen.add(record.usage_id);
      const belongs =
        record.account === bill["account"] &&
        record.currency === bill["currency"] &&
        record.day === day &&
        day.startsWith(`${String(bill["month"])}-`);
      if (!belongs) findings.add(where, "is of another account, day or currency");
    }
}

/** Checks that the lines of the bill and its total are the sums of the records. */
function checkSums(bill: JsonObject, records: readonly UsageRecord[], findings: Findings): void {
  const summer = createSummer(["model", "currency"]);
  for (const record of records) summer.addRecord(record);
  const total = emptySum();
  const sums = new Map<string, Sum>([["the total", total]]);
  for (const sum of summer.sums()) {
    addToSum(total, sum);
    sums.set(`the line of ${sum.model}`, sum);
  }
  const statedSums = asArray(bill["lines"])
    .map(asObject)
    .map((line) => ({ where: `the line of ${String(line["model"])}`, line }));
  statedSums.push({ where: "the total", line: asObject(bill["total"]) });
  for (const { where, line } of statedSums) {
    if (!statesSum(line, sums.get(where))) findings.add(where, "is not the sum of its records");
    sums.delete(where);
  }
  for (const where of sums.keys()) findings.add(where, "is not there, although it has records");
}

/** Whether a line of a bill has the figures of a sum. An older gateway wrote fewer figures. */
const statesSum = (line: JsonObject, sum: Sum | undefined): boolean =>
  sum !== undefined &&
  Object.entries(printedSum(sum)).every(([name, value]) => (line[name] ?? value) === value);
