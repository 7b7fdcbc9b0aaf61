// A statement with its proof: the records that it is made of, for each day the hashes that lead
// from them to the root in the head of that day, those heads, and a signature over all of it.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import type { StatementToSeal } from "../books/index.ts";
import type { UsageRecord } from "../usage-records/index.ts";
import { readLeaves, treeFile, treeOf } from "./tree/day-tree.ts";
import { readHeads, sealsDir, type HeadLine } from "./heads/heads.ts";
import { inColumnOrder, recordLeaf } from "./heads/make-head.ts";
import { HASH_BYTES, proofOf } from "./tree/merkle.ts";
import type { SealKey } from "./heads/seal-key.ts";
import { signatureEnd } from "./heads/signed.ts";

/** Records of one day, and the hashes that prove them. */
export interface ProvedDay {
  readonly day: string;
  /** `index`: the place of the record's leaf in the day's tree. */
  readonly records: readonly { readonly index: number; readonly record: object }[];
  /** As proofOf() gives them. */
  readonly hashes: readonly string[];
}

/** Prints text somewhere. Resolves when more may come. */
type Print = (text: string) => Promise<void>;

/** What a statement is sealed with. */
export interface StatementSources {
  readonly dataDir: string;
  readonly key: SealKey;
  /** The time of the statement, in milliseconds since 1970. */
  readonly now: number;
}

/** Records by the day on which they ended. */
type RecordsByDay = ReadonlyMap<string, readonly UsageRecord[]>;

/** Prints a statement with its proof, one line of JSON. */
export async function printSealedStatement(
  { dataDir, key, now }: StatementSources,
  { bill, records }: StatementToSeal,
  print: Print,
): Promise<void> {
  const dir = sealsDir(dataDir);
  const days = await byDay(records);
  const heads = readHeads(dir).filter(({ head }) => isNeeded(head, days));
  const lateLeaves = new Set(heads.flatMap(({ head }) => head.late.map(({ leaf }) => leaf)));
  const writer = createSignedWriter(print, key);
  const about = { type: "statement", bill, made_at: new Date(now).toISOString() };
  await writer.write(
    `${JSON.stringify({ ...about, public_key: key.publicHex }).slice(0, -1)},"heads":` +
      `${JSON.stringify(heads.map(({ text }) => text))},"days":[`,
  );
  const late: UsageRecord[] = [];
  const notProved: UsageRecord[] = [];
  let separator = "";
  for (const [day, ofDay] of [...days].sort()) {
    const { proved, others } = await proveDay(dir, headOf(heads, day), day, ofDay);
    if (proved) await writer.write(`${separator}${JSON.stringify(proved)}`);
    if (proved) separator = ",";
    for (const record of others) {
      const isLate = lateLeaves.has(recordLeaf(record).toString("hex"));
      (isLate ? late : notProved).push(record);
    }
  }
  const rest = JSON.stringify({ late, not_proved: notProved }).slice(1);
  await writer.write(`],${rest.slice(0, -1)}`);
  await writer.finish();
}

const headOf = (heads: readonly HeadLine[], day: string): HeadLine | undefined =>
  heads.find(({ head }) => head.day === day);

/** Whether a head proves a record of one of the days. */
const isNeeded = ({ day, late }: HeadLine["head"], days: RecordsByDay): boolean =>
  days.has(day) || late.some((record) => days.has(record.day));

async function byDay(records: StatementToSeal["records"]): Promise<RecordsByDay> {
  const days = new Map<string, UsageRecord[]>();
  for await (const batch of records) {
    for (const record of batch) {
      const day = record.ended_at.slice(0, 10);
      const known = days.get(day) ?? [];
      known.push(inColumnOrder(record));
      days.set(day, known);
    }
  }
  return days;
}

/** What the tree of a day proves of some records. */
interface DayProof {
  /** Undefined: none of them. */
  readonly proved: ProvedDay | undefined;
  /** Records that are not in the tree. */
  readonly others: readonly UsageRecord[];
}

async function proveDay(
  dir: string,
  line: HeadLine | undefined,
  day: string,
  records: readonly UsageRecord[],
): Promise<DayProof> {
  const path = treeFile(dir, day);
  if (!line || !existsSync(path)) return { proved: undefined, others: records };
  const leaves = readLeaves(path, line.head.records ?? 0);
  const tree = leaves && (await treeOf(leaves));
  if (tree?.root !== line.head.root)
    throw new Error(`${path} is not the tree of its head: 'seal verify' says what is wrong`);
  const found = records
    .map((record) => ({ index: tree.leaves.indexOf(recordLeaf(record)), record }))
    .sort((a, b) => a.index - b.index);
  const proved = found.filter(({ index }) => index >= 0);
  const others = found.filter(({ index }) => index < 0).map(({ record }) => record);
  if (proved.length === 0) return { proved: undefined, others };
  const known = proved.map(({ index }) => index);
  const hashes = proofOf(tree.leaves.count, known, (level, at) => {
    if (level === 0) return tree.leaves.leafAt(at);
    return tree.levels[level - 1]!.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES);
  });
  return { proved: { day, records: proved, hashes }, others };
}

/** Prints the pieces of a JSON object, and signs them at its end. */
function createSignedWriter(print: Print, key: SealKey) {
  const digest = createHash("sha256");
  return {
    async write(text: string): Promise<void> {
      digest.update(text);
      await print(text);
    },
    /** The object ends here. */
    async finish(): Promise<void> {
      const hash = digest.update("}").digest("hex");
      await print(`${signatureEnd(hash, key)}\n`);
    },
  };
}
