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
import { parseJson } from "../../../core/schema/untrusted-json.ts";
import { withBooks } from "../books/index.ts";
import { hasFileStore } from "../usage/index.ts";
import { keptTexts, type Trust, type Verified } from "./kept.ts";
import { publicHexOf } from "./sign.ts";
import { verifyBooks, type Verification } from "./verify.ts";
import { isStatement, verifyStatement, type StatementVerification } from "./verify-statement.ts";

async function run(args: CommandArguments, terminal: Terminal): Promise<number | void> {
  const path = args.operand;
  if (path === "") return await runConfigured(args, terminal);
  if (!existsSync(path)) throw new Error(`${path} is not there`);
  const trust = trustOf(args);
  if (!statSync(path).isDirectory()) {
    const result = verifyFile(path, trust);
    return await answer(result, statementLines(result), args, terminal);
  }
  const names = ["spend", "usage", "days.jsonl"];
  if (!names.some((name) => existsSync(join(path, name))))
    throw new Error(`${path} holds no books: it has none of ${names.join(", ")}`);
  const result = await verifyBooks(resolve(path), { trust });
  return await answer(result, booksLines(result), args, terminal);
}

/** Verifies the data_dir of the configuration, and the usage records where they are. */
const runConfigured = withBooks(async ({ books, config, args, terminal }) => {
  const { dataDir, spendDir, store, retention } = books;
  if (!existsSync(spendDir)) throw new Error(`there is no spend log in ${dataDir}`);
  const result = await verifyBooks(dataDir, {
    trust: trustOf(args),
    records: hasFileStore(config) ? "files" : store,
    mayBeGone: retention.isExpired,
  });
  return await answer(result, booksLines(result), args, terminal);
});

function trustOf({ values }: CommandArguments): Trust {
  const keyFile = values["public-key"];
  const keptFile = values["head"];
  return {
    publicKey: keyFile === undefined ? undefined : readPublicKey(keyFile),
    kept: keptFile === undefined ? [] : readKeptFile(keptFile),
  };
}

function readKeptFile(path: string): readonly string[] {
  const kept = keptTexts(readFileSync(path, "utf8"));
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

function verifyFile(path: string, trust: Trust): StatementVerification {
  const text = readFileSync(path, "utf8");
  if (!isStatement(text))
    throw new UsageError(
      `${path} is neither a data_dir nor a sealed statement; ` +
        "segments and usage records are verified with their data_dir",
    );
  if (!parseJson(text)) throw new Error(`${path} cannot be read: it was cut off or damaged`);
  return verifyStatement(text, trust);
}

/** What is proved of books, for people. */
function booksLines(result: Verification): readonly string[] {
  const { heads, segments, gone, days, awaited } = result;
  const lines = [
    heads.count > 0
      ? `days.jsonl: ${heads.count} closed days, from ${heads.from} to ${heads.to}`
      : "days.jsonl: no day was closed",
  ];
  for (const { file, lines: count, by } of gone)
    lines.push(`${file}: gone; ${count} lines were proved by ${by} until it was deleted`);
  for (const { file, lines: count, proved, by, torn_bytes: torn } of segments) {
    const proof = by === null ? "none proved yet" : `${proved} proved by ${by}`;
    const end = `; its last line is torn: ${torn} bytes that count for nothing`;
    lines.push(`${file}: ${count} lines, ${proof}${torn > 0 ? end : ""}`);
  }
  for (const { day, records, by_line, by_log } of days ?? []) {
    const proof = by_line
      ? "proved by the line of the day"
      : `${by_log} of them as the spend log has them`;
    lines.push(`usage records of ${day}: ${records}, ${proof}`);
  }
  if (!days)
    lines.push("usage records: there are none in files here, and nothing is said of others");
  if (awaited > 0) lines.push(`on the way into the usage records: ${awaited} requests`);
  return lines;
}

/** What is proved of a statement, for people. */
function statementLines(result: StatementVerification): readonly string[] {
  const { account, month, records, by_head, not_proved, compared } = result;
  return [
    `statement of ${account} for ${month}: ${records} records: ${by_head} proved by the lines of ` +
      `closed days, ${not_proved} of days that were open`,
    compared.length > 0
      ? `compared with heads that were kept: ${compared.join(", ")}`
      : "compared with no head that was kept elsewhere",
  ];
}

/** Without findings nothing was changed, unless there is nothing that could show a change. */
async function answer(
  result: Verified,
  lines: readonly string[],
  args: CommandArguments,
  terminal: Terminal,
): Promise<number> {
  const { public_key: key, key_stated, ok, findings } = result;
  const source = key_stated
    ? "as stated by --public-key"
    : "as the files state it: whoever can write them can replace it";
  const keyLine = key === null ? "key: none; nothing is signed" : `key: ${key}, ${source}`;
  const verdict = ok ? "nothing was changed" : "nothing is proved: no day is closed";
  const wrong = ["something was changed, removed or damaged:", ...findings].join("\n  ");
  const text = [keyLine, ...lines, findings.length > 0 ? wrong : verdict, ""].join("\n");
  await terminal.answer(args, result, text);
  return ok ? 0 : 1;
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
