// The commands `seal head` and `seal public-key`.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { lineOf, syncUsage } from "../usage/index.ts";
import { assertSpendLog, withBooks } from "../books/index.ts";
import { createSigner, keyFile, publicPem, seals } from "./sign.ts";

const runHead = withBooks(async (context) => {
  const { books, terminal } = context;
  assertSpendLog(context);
  const head = await books.locked(async () => {
    await syncUsage(books);
    return await lineOf(books, await books.store.cursor());
  });
  await terminal.print(`${head}\n`);
});

/** Prints a head of this moment, for somebody to keep outside of this machine. */
export const headCommand: Command = {
  summary: "print a head of the books, for an auditor to keep; signed, with seals",
  example: "seal head",
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
