// Prints a sealed statement: the bill, and for each day the account's records. For a closed day it
// adds the line of the day, and the hashes that lead from the records to the root in that line. The
// whole statement is signed. It is printed day by day, so that only the open days and one closed
// day are in memory.
import { createHash } from "node:crypto";
import { copyOfPart, createMerkleRoot, leafOf, type DaysLine } from "../days/index.ts";
import { parseMoney, parseUsageLine, type UsageRecord } from "../records/index.ts";
import type { BooksFiles, Signer, StatementToSeal } from "../usage/index.ts";

type DayWithProof = Awaited<ReturnType<typeof withProof>>;

/**
 * As Signer.printStatement. Rejects if the records of a closed day are not those of its line, or if
 * their costs do not add up to the total of the bill.
 */
export async function printSealedStatement(
  signer: Signer,
  books: BooksFiles,
  makeBill: () => Promise<StatementToSeal>,
  print: (text: string) => Promise<void>,
): Promise<void> {
  const { store, days, clock } = books;
  const hash = createHash("sha256");
  async function write(text: string): Promise<void> {
    hash.update(text);
    await print(text);
  }
  const openDays = new Map<string, DayWithProof>();
  const isBilledIn = (bill: StatementToSeal) => (record: UsageRecord) =>
    record.account === bill.account && record.currency === bill.currency;
  const readDay = (day: string, bill: StatementToSeal) =>
    withProof(day, store.linesOf(day), days.of(day), isBilledIn(bill));
  // The lock keeps the sync from adding records to an open day after the bill is made.
  const { bill, monthDays } = await books.locked(async () => {
    const bill = await makeBill();
    const monthDays = (await store.days()).filter((day) => day.startsWith(bill.month));
    for (const day of monthDays.filter((each) => !days.of(each)))
      openDays.set(day, await readDay(day, bill));
    return { bill, monthDays };
  });
  const opening = { type: "statement", bill, made_at: new Date(clock.now()).toISOString() };
  const head = JSON.stringify({ ...opening, public_key: signer.publicHex });
  await write(`${head.slice(0, -1)},"days":[`);
  let cost = 0n;
  let separator = "";
  for (const day of monthDays) {
    const proved = openDays.get(day) ?? (await readDay(day, bill));
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

/** Returns the billed records of a day and, if the day is closed, their proof. */
async function withProof(
  day: string,
  batches: ReturnType<BooksFiles["store"]["linesOf"]>,
  line: DaysLine | undefined,
  isBilled: (record: UsageRecord) => boolean,
) {
  const merkle = createMerkleRoot();
  const records: (readonly [number, string])[] = [];
  let index = 0;
  for await (const { lines } of batches)
    for (const { text, record } of lines) {
      const isIncluded = record !== undefined && isBilled(record);
      merkle.add(leafOf(text), isIncluded);
      if (isIncluded) records.push([index, copyOfPart(text)]);
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
