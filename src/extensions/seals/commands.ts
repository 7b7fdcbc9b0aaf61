// `seal head` and `seal public-key`.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { JSON_OPTION, type Command } from "../../command-line/command.ts";
import { systemClock } from "../../core/clock.ts";
import { hasSpendLog, withBooks } from "../books/index.ts";
import { firstSealedDay } from "./heads/close-days.ts";
import { readHeads, sealsDir, type HeadLine } from "./heads/heads.ts";
import { makeHeadNow } from "./heads/make-head.ts";
import { keyFile, sealKeyOf } from "./heads/seal-key.ts";
import { seals } from "./settings.ts";

const DAY = /^\d{4}-\d\d-\d\d$/;

const runHead = withBooks(async (context) => {
  const { config, args, terminal } = context;
  const dataDir = resolve(config.data_dir);
  const { day } = args.values;
  if (day === undefined && !hasSpendLog(context))
    throw new Error(`there is no spend log in ${dataDir}`);
  const { text } = day === undefined ? await headNow(dataDir, terminal.warn) : headOf(dataDir, day);
  await terminal.print(`${text}\n`);
});

async function headNow(dataDir: string, warn: (line: string) => void): Promise<HeadLine> {
  const now = systemClock.now();
  const today = new Date(now).toISOString().slice(0, 10);
  const heads = readHeads(sealsDir(dataDir));
  const spendDir = join(dataDir, "spend");
  const sources = {
    spendDir,
    heads,
    firstDay: heads[0]?.head.day ?? firstSealedDay(spendDir) ?? today,
    months: [],
    key: sealKeyOf(dataDir),
    now,
    broken: (text: string) => warn(`warning: ${text}`),
  };
  return await makeHeadNow(sources, today);
}

function headOf(dataDir: string, day: string): HeadLine {
  const found = readHeads(sealsDir(dataDir)).find(({ head }) => head.day === day);
  if (!found) throw new Error(`${day} has no head: it is not over, or was not sealed`);
  return found;
}

/** Whether a text is a day of the calendar. */
const isDay = (text: string): boolean =>
  DAY.test(text) && new Date(`${text}T00:00:00Z`).toJSON()?.startsWith(text) === true;

/** Prints a signed head, for somebody to keep outside of this machine. */
export const headCommand: Command = {
  summary: "print a signed head of the books, for an auditor to keep",
  example: "seal head",
  options: {
    day: {
      value: "YYYY-MM-DD",
      meaning: "the head of this day, which is over",
      fallback: "one of this moment",
      test: isDay,
      expected: "a day such as 2026-11-30",
    },
  },
  run: runHead,
};

/** Prints the public key, and makes the key if these are sealed books that have none yet. */
export const publicKeyCommand: Command = {
  summary: "print the public key that verifies the heads of these books",
  example: "seal public-key",
  options: { json: JSON_OPTION },
  async run(args, terminal) {
    const { config } = await terminal.load(args, { withoutSecrets: true });
    const dataDir = resolve(config.data_dir);
    const path = keyFile(dataDir);
    if (!existsSync(path)) {
      if (!existsSync(dataDir))
        throw new Error(`there are no books in ${dataDir}: no gateway has run with it`);
      if (!seals.of(config).enabled)
        throw new Error(`there is no ${path}, and the configuration does not switch seals on`);
      terminal.warn(`${path} is made: these books had no key yet`);
    }
    const { publicHex, publicPem } = sealKeyOf(dataDir);
    await terminal.answer(args, { public_key: publicHex }, publicPem);
  },
};
