// Verifies a sealed statement by itself: its signature, its sums, and the way from each record to
// the root in the signed line of its day.
import { formatMoney } from "../../../core/ledger/price.ts";
import { asArray, asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";
import { AMOUNT, parseMoney } from "../records/index.ts";
import { leafOf, parseClosedDay, rootFrom, type DaysLine } from "../days/index.ts";
import { createFindings, type Findings } from "../proof/index.ts";
import { isHead, readKept, type Trust, type Verified } from "./kept.ts";
import { isSignedBy } from "./sign.ts";

/** What was found of a statement. `seal verify --json` prints it. */
export interface StatementVerification extends Verified {
  /** Whose bill it is. */
  readonly account: string;
  /** `YYYY-MM`. */
  readonly month: string;
  /** Records of the statement. */
  readonly records: number;
  /** Records that the signed line of a closed day proves. */
  readonly by_head: number;
  /** Records of days that were open when it was made: its own signature alone has them. */
  readonly not_proved: number;
  /** The days of the lines in the statement that were compared with lines that were kept. */
  readonly compared: readonly string[];
}

/** A JSON object of which nothing is known. */
type Json = Readonly<Record<string, unknown>>;

/** Whether a text is a statement with its proof. */
export const isStatement = (text: string): boolean => text.startsWith('{"type":"statement"');

/** Verifies a statement. `text`: the content of its file. */
export function verifyStatement(text: string, trust: Trust): StatementVerification {
  const findings = createFindings();
  const line = text.replace(/\n$/, "");
  const statement = asObject(parseJson(line));
  const bill = asObject(statement["bill"]);
  const publicKey = trust.publicKey ?? asString(statement["public_key"]) ?? "";
  if (!isSignedBy(line, publicKey))
    findings.add("the statement", "was changed, or signed by another key: its signature is wrong");
  const days = asArray(statement["days"]).map((day) => readDay(asObject(day), publicKey, findings));
  const kept = readKept(trust, publicKey, findings).filter(({ closed }) => !isHead(closed));
  const compared = kept.filter((line) => compareKept(line, days, findings));
  const records = days.flatMap((day) => day.records);
  checkRecords(bill, days, findings);
  checkSums(bill, records, findings);
  const proved = days.filter((day) => day.line !== undefined).flatMap((day) => day.records);
  const list = findings.list();
  return {
    ok: list.length === 0,
    public_key: publicKey,
    key_stated: trust.publicKey !== undefined,
    account: String(bill["account"]),
    month: String(bill["month"]),
    records: records.length,
    by_head: proved.length,
    not_proved: records.length - proved.length,
    compared: compared.map(({ closed }) => closed.day),
    findings: list,
  };
}

/** What a statement has of a day. */
interface StatementDay {
  readonly day: string;
  /** The line of the closed day. Undefined: it was open. */
  readonly line: string | undefined;
  readonly records: readonly Json[];
}

function readDay(json: Json, publicKey: string, findings: Findings): StatementDay {
  const day = String(json["day"]);
  const line = asString(json["line"]);
  const entries = asArray(json["records"]).map((entry) => asArray(entry));
  const records = entries.map(([, text]) => asObject(parseJson(String(text))));
  if (line === undefined) return { day, line, records };
  const closed = parseClosedDay(line);
  if (closed?.day !== day || !isSignedBy(line, publicKey))
    findings.add(`the line of ${day}`, "was changed, or signed by another key");
  const leaves = new Map(entries.map(([index, text]) => [Number(index), leafOf(String(text))]));
  const root = rootFrom(closed?.records ?? 0, leaves, asArray(json["hashes"]).map(String));
  if (leaves.size !== entries.length || (leaves.size > 0 && root !== closed?.root))
    findings.add(`the records of ${day}`, "are not those that the line of that day proves");
  return { day, line, records };
}

/** Compares the line of a day that was kept. Returns whether the statement has that day. */
function compareKept(
  { text, closed }: DaysLine,
  days: readonly StatementDay[],
  findings: Findings,
): boolean {
  const same = days.find(({ day }) => day === closed.day);
  if (same && same.line !== text)
    findings.add(`the line of ${same.day} in the statement`, "is not the one that was kept");
  return same !== undefined;
}

/** Each record is of the account, the month, the currency and its day, and there once. */
function checkRecords(bill: Json, days: readonly StatementDay[], findings: Findings): void {
  const seen = new Set<unknown>();
  for (const { day, records } of days)
    for (const record of records) {
      const { usage_id: id, account, currency } = record;
      const where = `record ${String(id)}`;
      if (seen.has(id)) findings.add(where, "is in the statement twice");
      seen.add(id);
      const isMeant =
        account === bill["account"] &&
        currency === bill["currency"] &&
        record["day"] === day &&
        day.startsWith(`${String(bill["month"])}-`);
      if (!isMeant) findings.add(where, "is of another account, day or currency");
    }
}

/** The lines of the bill and its total are the sums of the records. */
function checkSums(bill: Json, records: readonly Json[], findings: Findings): void {
  const lines = asArray(bill["lines"]).map(asObject);
  for (const model of new Set([...lines, ...records].map((each) => each["model"]))) {
    const isOf = (each: Json): boolean => each["model"] === model;
    const [sum, ...others] = lines.filter(isOf);
    if (!sum || others.length > 0 || !isSumOf(sum, records.filter(isOf)))
      findings.add(`the line of ${String(model)}`, "is not the sum of its records");
  }
  if (!isSumOf(asObject(bill["total"]), records))
    findings.add("the total", "is not the sum of the records");
}

function isSumOf(sum: Json, records: readonly Json[]): boolean {
  return Object.entries(sum).every(([name, value]) => {
    if (name === "requests") return value === records.length;
    if (name === "cost") return value === costOf(records);
    if (typeof value !== "number") return true;
    return value === records.reduce((total, record) => total + Number(record[name] ?? 0), 0);
  });
}

function costOf(records: readonly Json[]): string | undefined {
  const costs = records.map(({ cost }) => String(cost));
  if (!costs.every((cost) => AMOUNT.test(cost))) return undefined;
  return formatMoney(costs.reduce((sum, cost) => sum + parseMoney(cost), 0n));
}
