// A statement with its proof: the bill, and for each day the lines of its records. Those of a
// closed day come with the line of the day and the hashes that lead from them to the root in it.
// All of it is signed. It is printed as it is made: in memory is the proof of one closed day, and
// those of the days that are open.
import { createHash } from "node:crypto";
import { createMerkleRoot, leafOf, type DaysLine } from "../days/index.ts";
import { parseMoney, parseUsageLine, type UsageRecord } from "../records/index.ts";
import type { BooksFiles, StatementToSeal } from "../usage/index.ts";

type Proved = Awaited<ReturnType<typeof provedDay>>;

/**
 * Prints a statement with its proof, one line of JSON. Throws if the books are not signed, or if
 * the records add up to something else than the bill.
 */
export async function printSealedStatement(
  books: Pick<BooksFiles, "store" | "days" | "signer" | "clock" | "locked">,
  makeBill: () => Promise<StatementToSeal>,
  print: (text: string) => Promise<void>,
): Promise<void> {
  const { store, days, signer, clock } = books;
  if (!signer) throw new Error("a sealed statement needs seals.enabled in the configuration");
  const hash = createHash("sha256");
  async function write(text: string): Promise<void> {
    hash.update(text);
    await print(text);
  }
  const open = new Map<string, Proved>();
  const isOf = (bill: StatementToSeal) => (record: UsageRecord) =>
    record.account === bill.account && record.currency === bill.currency;
  // While nothing is copied: the records of an open day must be those of the bill.
  const { bill, all } = await books.locked(async () => {
    const bill = await makeBill();
    const all = (await store.days()).filter((day) => day.startsWith(bill.month));
    for (const day of all.filter((each) => !days.of(each)))
      open.set(day, await provedDay(day, store.linesOf(day), undefined, isOf(bill)));
    return { bill, all };
  });
  const about = { type: "statement", bill, made_at: new Date(clock.now()).toISOString() };
  const head = JSON.stringify({ ...about, public_key: signer.publicHex });
  await write(`${head.slice(0, -1)},"days":[`);
  let cost = 0n;
  let separator = "";
  for (const day of all) {
    const proved =
      open.get(day) ?? (await provedDay(day, store.linesOf(day), days.of(day), isOf(bill)));
    for (const [, text] of proved.records) cost += parseMoney(parseUsageLine(text)!.cost);
    await write(`${separator}${JSON.stringify(proved)}`);
    separator = ",";
  }
  if (cost !== parseMoney(bill.total.cost))
    throw new Error("the sums of these days are not those of their records: run 'books rebuild'");
  await write("]");
  const signature = signer.signatureOf(hash.update("}").digest());
  await print(`,"signature":"${signature}"}\n`);
}

/** The records of a day and, if it is closed, their proof. */
async function provedDay(
  day: string,
  batches: ReturnType<BooksFiles["store"]["linesOf"]>,
  line: DaysLine | undefined,
  isWanted: (record: UsageRecord) => boolean,
) {
  const merkle = createMerkleRoot();
  const records: (readonly [number, string])[] = [];
  let index = 0;
  for await (const { lines } of batches)
    for (const { text, record } of lines) {
      const isProved = record !== undefined && isWanted(record);
      merkle.add(leafOf(text), isProved);
      if (isProved) records.push([index, text]);
      index += 1;
    }
  if (!line) return { day, records };
  if (merkle.root() !== line.closed.root)
    throw new Error(
      `the usage records of ${day} are not those of its line in days.jsonl: ` +
        "'seal verify' says what is wrong",
    );
  return { day, line: line.text, records, hashes: merkle.hashes() };
}
