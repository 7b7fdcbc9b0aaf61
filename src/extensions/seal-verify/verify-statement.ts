// Verifies a sealed statement by itself: its signature, its sums, and the way from each record to
// the root in the signed head of its day.
import { formatMoney } from "../../core/ledger/price.ts";
import { AMOUNT, parseMoney } from "../usage-records/index.ts";
import { asArray, asObject, asString, parseJson } from "../../core/schema/untrusted-json.ts";
import { hasSignature, type HeadLine, leafOf, parseHead, rootOfProof } from "../seals/index.ts";
import { createFindings, type Findings } from "./findings.ts";
import { NO_HEAD, type Trust } from "./verify-heads.ts";

/** What was found of a statement. `seal verify --json` prints it. */
export interface StatementVerification {
  readonly ok: boolean;
  /** The public key, 64 hexadecimal digits. */
  readonly public_key: string;
  /** Whether the caller has stated the public key. If not, it is that of the statement itself. */
  readonly key_stated: boolean;
  readonly account: string;
  readonly month: string;
  /** Records of the statement. */
  readonly records: number;
  /** Records that the signed head of a day proves. */
  readonly by_head: number;
  /** Records of days that had no head when the statement was made: the signature alone has them. */
  readonly not_proved: number;
  /** The days of the heads in the statement that were compared with heads kept elsewhere. */
  readonly compared: readonly string[];
  readonly findings: readonly string[];
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
  if (!hasSignature(line, publicKey))
    findings.add("the statement", "was changed, or signed by another key: its signature is wrong");
  const heads = headsIn(statement, publicKey, findings);
  const { compared, closed } = compareKept(heads, trust.kept, publicKey, findings);
  const byHead = [
    ...provedRecords(statement, heads, findings),
    ...lateRecords(statement, heads, findings),
  ];
  const notProved = asArray(statement["not_proved"]).map(asObject);
  checkNotProved(notProved, new Set([...heads.map(({ head }) => head.day), ...closed]), findings);
  const records = [...byHead, ...notProved];
  checkRecords(bill, records, findings);
  checkSums(bill, records, findings);
  const list = findings.list();
  return {
    ok: list.length === 0,
    public_key: publicKey,
    key_stated: trust.publicKey !== undefined,
    account: String(bill["account"]),
    month: String(bill["month"]),
    records: records.length,
    by_head: byHead.length,
    not_proved: notProved.length,
    compared,
    findings: list,
  };
}

function headsIn(statement: Json, publicKey: string, findings: Findings): readonly HeadLine[] {
  return asArray(statement["heads"]).flatMap((text, index) => {
    const where = `head ${index + 1} of the statement`;
    const line = parseHead(asString(text) ?? "");
    if (!line) {
      findings.add(where, "is no head");
      return [];
    }
    if (!hasSignature(line.text, publicKey))
      findings.add(where, `of ${line.head.day}: its signature is wrong`);
    return [line];
  });
}

/** What the heads that were kept say of a statement. */
interface KeptHeads {
  /** The days of which the statement has a head too. */
  readonly compared: readonly string[];
  /** The days that are closed, by the heads that were kept. */
  readonly closed: readonly string[];
}

/** Compares heads with those that were kept, of the same days. */
function compareKept(
  heads: readonly HeadLine[],
  kept: readonly string[],
  publicKey: string,
  findings: Findings,
): KeptHeads {
  const compared: string[] = [];
  const closed: string[] = [];
  for (const text of kept) {
    const named = keptHash(text);
    if (!named) {
      findings.add("the head that was kept", NO_HEAD);
      continue;
    }
    const { day, hash } = named;
    if (named.isHead && !hasSignature(text, publicKey)) {
      findings.add("the head that was kept", `of ${day}: its signature is wrong`);
      continue;
    }
    if (named.isOpen) continue;
    closed.push(day);
    const same = heads.find(({ head }) => head.day === day);
    if (!same) continue;
    if (same.hash !== hash)
      findings.add(`the head of ${day} in the statement`, "is not the one that was kept");
    compared.push(day);
  }
  return { compared, closed };
}

/** Day and hash of a head, or of the line of the log that names it. Undefined: it is neither. */
function keptHash(text: string) {
  const line = parseHead(text);
  if (line) {
    const { day, number } = line.head;
    return { day, hash: line.hash, isHead: true, isOpen: number === null };
  }
  const { event, ...named } = asObject(parseJson(text));
  const day = asString(named["day"]);
  const hash = asString(named["head"]);
  if (event !== "seal_head" || day === undefined || hash === undefined) return undefined;
  return { day, hash, isHead: false, isOpen: false };
}

/** A record of a closed day is in the tree of that day, or a later head names it. */
function checkNotProved(
  records: readonly Json[],
  closed: ReadonlySet<string>,
  findings: Findings,
): void {
  for (const { usage_id: id, ended_at: endedAt } of records) {
    const day = String(endedAt).slice(0, 10);
    if (closed.has(day))
      findings.add(`record ${String(id)}`, `ended on ${day}, which has a head, and none has it`);
  }
}

/** The records of each day, if their hashes lead to the root of its head. */
function provedRecords(
  statement: Json,
  heads: readonly HeadLine[],
  findings: Findings,
): readonly Json[] {
  return asArray(statement["days"]).flatMap((value) => {
    const { day, records, hashes } = asObject(value);
    const entries = asArray(records).map(asObject);
    const head = heads.find((line) => line.head.day === day)?.head;
    const known = new Map(
      entries.map(
        ({ index, record }) => [Number(index), leafOf(JSON.stringify(asObject(record)))] as const,
      ),
    );
    const root = rootOfProof(head?.records ?? 0, known, asArray(hashes).map(String));
    if (known.size !== entries.length || root === undefined || root !== head?.root)
      findings.add(
        `the records of ${String(day)} in the statement`,
        "are not those that the head of that day proves",
      );
    return entries.map(({ record }) => asObject(record));
  });
}

function lateRecords(
  statement: Json,
  heads: readonly HeadLine[],
  findings: Findings,
): readonly Json[] {
  const leaves = new Set(heads.flatMap(({ head }) => head.late.map(({ leaf }) => leaf)));
  const records = asArray(statement["late"]).map(asObject);
  for (const record of records)
    if (!leaves.has(leafOf(JSON.stringify(record)).toString("hex")))
      findings.add(`record ${String(record["usage_id"])}`, "is in no head of the statement");
  return records;
}

/** Each record is of the account, the month and the currency, and there once. */
function checkRecords(bill: Json, records: readonly Json[], findings: Findings): void {
  const seen = new Set<unknown>();
  for (const record of records) {
    const { usage_id: id, account, currency, ended_at: endedAt } = record;
    const where = `record ${String(id)}`;
    if (seen.has(id)) findings.add(where, "is in the statement twice");
    seen.add(id);
    const isMeant =
      account === bill["account"] &&
      currency === bill["currency"] &&
      String(endedAt).startsWith(`${String(bill["month"])}-`);
    if (!isMeant) findings.add(where, "is of another account, month or currency");
  }
}

/** The lines of the bill and its total are the sums of the records. */
function checkSums(bill: Json, records: readonly Json[], findings: Findings): void {
  const lines = asArray(bill["lines"]).map(asObject);
  const models = new Set([...lines, ...records].map(({ model }) => String(model)));
  for (const model of models) {
    const ofModel = records.filter((record) => record["model"] === model);
    const sums = lines.filter((line) => line["model"] === model);
    if (sums.length !== 1 || !isSumOf(sums[0]!, ofModel))
      findings.add(`the line of ${model}`, "is not the sum of its records");
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
