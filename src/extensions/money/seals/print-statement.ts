// A statement with its proof: the bill, and for each day the lines of its records. Those of a
// closed day come with the line of the day and the hashes that lead from them to the root in it.
// All of it is signed. It is printed as it is made: only the proof of one day is held in memory.
import { createHash } from "node:crypto";
import type { DayLine, UsageRecord } from "../records/index.ts";
import { createMerkleRoot, leafOf, type DaysLine } from "../days/index.ts";
import type { BooksFiles, Signer, StatementToSeal } from "../usage/index.ts";

/** Prints text somewhere. Resolves when more may come. */
type Print = (text: string) => Promise<void>;

/** Prints a statement with its proof, one line of JSON. Throws if the books are not signed. */
export async function printSealedStatement(
  books: Pick<BooksFiles, "store" | "days" | "signer" | "clock">,
  bill: StatementToSeal,
  print: Print,
): Promise<void> {
  const { store, days, signer, clock } = books;
  if (!signer) throw new Error("a sealed statement needs seals.enabled in the configuration");
  const writer = createSignedWriter(print, signer);
  const about = { type: "statement", bill, made_at: new Date(clock.now()).toISOString() };
  const head = JSON.stringify({ ...about, public_key: signer.publicHex });
  await writer.write(`${head.slice(0, -1)},"days":[`);
  const closed = new Map(days.all().map((line) => [line.closed.day, line]));
  const isWanted = ({ account, currency }: UsageRecord): boolean =>
    account === bill.account && currency === bill.currency;
  let separator = "";
  for (const day of (await store.days()).filter((name) => name.startsWith(bill.month))) {
    await writer.write(`${separator}{"day":"${day}",`);
    await writeDay(store.linesOf(day), isWanted, closed.get(day), writer);
    separator = ",";
  }
  await writer.write("]");
  await writer.finish();
}

/** Writes the records of a day and, if it is closed, their proof. */
async function writeDay(
  batches: ReturnType<BooksFiles["store"]["linesOf"]>,
  isWanted: (record: UsageRecord) => boolean,
  line: DaysLine | undefined,
  writer: SignedWriter,
): Promise<void> {
  const merkle = createMerkleRoot();
  let index = 0;
  let separator = "";

  /** The records among some lines, each with its index. */
  function entries(lines: readonly DayLine[]): string {
    let texts = "";
    for (const { text, record } of lines) {
      const isProved = record !== undefined && isWanted(record);
      if (line) merkle.add(leafOf(text), isProved);
      if (isProved) {
        texts += `${separator}[${index},${JSON.stringify(text)}]`;
        separator = ",";
      }
      index += 1;
    }
    return texts;
  }

  if (line) await writer.write(`"line":${JSON.stringify(line.text)},`);
  await writer.write('"records":[');
  for await (const lines of batches) await writer.write(entries(lines));
  if (!line) return await writer.write("]}");
  if (merkle.root() !== line.closed.root)
    throw new Error(
      `the usage records of ${line.closed.day} are not those of its line in days.jsonl: ` +
        "'seal verify' says what is wrong",
    );
  await writer.write(`],"hashes":${JSON.stringify(separator === "" ? [] : merkle.hashes())}}`);
}

/** Writes the pieces of a JSON object, and signs them at its end. */
interface SignedWriter {
  write(text: string): Promise<void>;
  /** The object ends here. */
  finish(): Promise<void>;
}

function createSignedWriter(print: Print, signer: Signer): SignedWriter {
  const digest = createHash("sha256");
  return {
    async write(text) {
      digest.update(text);
      await print(text);
    },
    async finish() {
      const signature = signer.signatureOf(digest.update("}").digest());
      await print(`,"signature":"${signature}"}\n`);
    },
  };
}
