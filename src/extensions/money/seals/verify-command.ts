// `seal verify`: verifies a data_dir or a sealed statement, and prints what is proved.
import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import { systemClock } from "../../../core/clock.ts";
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { hasFileStore, openBooks } from "../usage/index.ts";
import { keptLines, type Trust } from "./chain.ts";
import { sourceOfStore } from "../proof/index.ts";
import { publicHexOf } from "./sign.ts";
import { verifyBooks, type DayProof, type Verification } from "./verify.ts";
import { isStatement, verifyStatement, type StatementVerification } from "./verify-statement.ts";

async function run(args: CommandArguments, terminal: Terminal): Promise<number> {
  const trust = trustOf(args);
  const path = args.operand;
  if (path !== "" && !existsSync(path)) throw new Error(`${path} is not there`);
  if (path !== "" && !statSync(path).isDirectory())
    return await verifyFile(path, args, terminal, trust);
  const result =
    path === "" ? await verifyConfigured(args, terminal, trust) : await verifyFolder(path, trust);
  await terminal.answer(args, result, booksText(result));
  return result.ok ? 0 : 1;
}

function trustOf({ values }: CommandArguments): Trust {
  const keyFile = values["public-key"];
  const headFile = values["head"];
  return {
    publicKey: keyFile === undefined ? undefined : readPublicKey(keyFile),
    kept: headFile === undefined ? [] : readKept(headFile),
  };
}

function readKept(path: string): readonly string[] {
  const kept = keptLines(readFileSync(path, "utf8"));
  if (kept.length === 0) throw new Error(`${path} holds no head, and no line that names one`);
  return kept;
}

function readPublicKey(path: string): string {
  const text = readFileSync(path, "utf8");
  try {
    return publicHexOf(text);
  } catch (error) {
    throw new Error(`${path} holds no public key of seals: ${(error as Error).message}`);
  }
}

async function verifyFolder(path: string, trust: Trust): Promise<Verification> {
  const names = ["spend", "usage", "days.jsonl"];
  if (!names.some((name) => existsSync(join(path, name))))
    throw new Error(`${path} holds no books: it has none of ${names.join(", ")}`);
  return await verifyBooks(resolve(path), { trust });
}

/** Verifies the data_dir of the configuration, and the usage records where they are. */
async function verifyConfigured(
  args: CommandArguments,
  terminal: Terminal,
  trust: Trust,
): Promise<Verification> {
  const { config, extensions } = await terminal.load(args, { withoutSecrets: true });
  const diagnose = (event: object): void => terminal.warn(JSON.stringify(event));
  const books = openBooks(config, { clock: systemClock, diagnose, extensions });
  const { dataDir, spendDir, store, retention } = books;
  try {
    if (!existsSync(spendDir)) throw new Error(`there is no spend log in ${dataDir}`);
    return await verifyBooks(dataDir, {
      trust,
      ...(!hasFileStore(config) && { source: await sourceOfStore(store) }),
      hasRecords: true,
      mayBeGone: retention.isExpired,
    });
  } finally {
    await store.close();
  }
}

async function verifyFile(
  path: string,
  args: CommandArguments,
  terminal: Terminal,
  trust: Trust,
): Promise<number> {
  const text = readFileSync(path, "utf8");
  if (!isStatement(text))
    throw new UsageError(
      `${path} is neither a data_dir nor a sealed statement; ` +
        "segments and usage records are verified with their data_dir",
    );
  if (!parseJson(text)) throw new Error(`${path} cannot be read: it was cut off or damaged`);
  const result = verifyStatement(text, trust);
  await terminal.answer(args, result, statementText(result));
  return result.ok ? 0 : 1;
}

/** A verification for people. */
function booksText(result: Verification): string {
  const { heads, segments, gone, days, awaited } = result;
  const lines = [
    heads.count > 0
      ? `days.jsonl: ${heads.count} closed days, from ${heads.from} to ${heads.to}`
      : "days.jsonl: no day was closed",
    ...gone.map(
      ({ file, lines: count, by }) =>
        `${file}: gone; ${count} lines were proved by ${by} until it was deleted`,
    ),
    ...segments.map(
      ({ file, lines: count, proved, by, torn_bytes: torn }) =>
        `${file}: ${count} lines, ` +
        (by === null ? "none proved yet" : `${proved} proved by ${by}`) +
        (torn > 0 ? `; its last line is torn: ${torn} bytes that count for nothing` : ""),
    ),
    ...(days?.map(dayText) ?? [
      "usage records: there are none in files here, and nothing is said of others",
    ]),
    ...(awaited > 0 ? [`on the way into the usage records: ${awaited} requests`] : []),
  ];
  return textOf(result, lines);
}

const dayText = ({ day, records, by_line, by_log }: DayProof): string =>
  `usage records of ${day}: ${records}, ` +
  (by_line ? "proved by the line of the day" : `${by_log} of them as the spend log has them`);

/** A verification of a statement for people. */
function statementText(result: StatementVerification): string {
  const { account, month, records, by_head, not_proved, compared } = result;
  const lines = [
    `statement of ${account} for ${month}: ${records} records: ${by_head} proved by the lines of ` +
      `closed days, ${not_proved} of days that were open`,
    compared.length > 0
      ? `compared with heads that were kept: ${compared.join(", ")}`
      : "compared with no head that was kept elsewhere",
  ];
  return textOf(result, lines);
}

/** Without findings nothing was changed, unless there is nothing that could show a change. */
function textOf(result: Verification | StatementVerification, lines: readonly string[]): string {
  const { public_key: key, key_stated, ok, findings } = result;
  const source = key_stated
    ? "as stated by --public-key"
    : "as the files state it: whoever can write them can replace it";
  const keyLine = key === null ? "key: none; nothing is signed" : `key: ${key}, ${source}`;
  const verdict = ok ? "nothing was changed" : "nothing is proved: no day is closed";
  const wrong = ["something was changed, removed or damaged:", ...findings];
  return [keyLine, ...lines, findings.length > 0 ? wrong.join("\n  ") : verdict, ""].join("\n");
}

export const verifyCommand: Command = {
  summary: "verify the books, or a sealed statement, by their files alone",
  operand: "PATH",
  operandOptional: true,
  operandMeaning: "a data_dir or a sealed statement (default: the books of the configuration)",
  example: "seal verify statement.json --public-key public-key.pem --head head.json",
  options: {
    "public-key": {
      value: "FILE",
      meaning: "the public key of the installation, in PEM",
      fallback: "the one in the files",
    },
    head: {
      value: "FILE",
      meaning: "heads that were kept elsewhere, or lines of the log that name them",
    },
    json: JSON_OPTION,
  },
  run,
};
