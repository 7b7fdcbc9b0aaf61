// The commands `seal head` and `seal public-key`.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { isCalendarDay } from "../records/index.ts";
import { lineOf, syncUsage, type BooksFiles } from "../usage/index.ts";
import { assertSpendLog, withBooks } from "../books/index.ts";
import { createSigner, keyFile, publicPem, seals } from "./sign.ts";

const runHead = withBooks(async (context) => {
  const { books, args, terminal } = context;
  const { day } = args.values;
  if (day === undefined) assertSpendLog(context);
  await terminal.print(`${day === undefined ? await makeHead(books) : lineOfDay(books, day)}\n`);
});

/** Makes a head of this moment, which covers the records of all open days. */
async function makeHead(books: BooksFiles): Promise<string> {
  return await books.locked(async () => {
    await syncUsage(books);
    return await lineOf(books, await books.store.cursor());
  });
}

function lineOfDay({ days }: BooksFiles, day: string): string {
  const found = days.of(day);
  if (!found) throw new Error(`${day} has no line in days.jsonl: it is not closed`);
  return found.text;
}

/** Prints a head, for somebody to keep outside of this machine. */
export const headCommand: Command = {
  summary: "print a head of the books, for an auditor to keep; signed, with seals",
  example: "seal head",
  options: {
    day: {
      value: "YYYY-MM-DD",
      help: "the line of this closed day",
      fallback: "a head of this moment",
      test: isCalendarDay,
      expected: "a day such as 2026-11-30",
    },
  },
  run: runHead,
};

/** Prints the public key. Makes the key if seals are enabled and there is none yet. */
export const publicKeyCommand: Command = {
  summary: "print the public key that verifies the heads of these books",
  example: "seal public-key",
  options: { json: JSON_OPTION },
  async run(args, terminal) {
    const { config } = await terminal.load(args, { secretsOptional: true });
    const dataDir = resolve(config.data_dir);
    const path = keyFile(dataDir);
    if (!existsSync(path)) {
      if (!existsSync(dataDir))
        throw new Error(`there are no books in ${dataDir}: no gateway has run with it`);
      if (!seals.of(config).enabled)
        throw new Error(`there is no ${path}, and the configuration does not switch seals on`);
      terminal.warn(`${path} is made: these books had no key yet`);
    }
    const { publicHex } = createSigner(dataDir);
    await terminal.printResult(args, { public_key: publicHex }, publicPem(publicHex));
  },
};
