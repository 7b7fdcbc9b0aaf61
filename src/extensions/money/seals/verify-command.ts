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
import { assertSpendLog, withBooks } from "../books/index.ts";
import { booksToProve } from "../proof/index.ts";
import { publicHexOf } from "./sign.ts";
import { findKeptLines, verifyBooks, type TrustAnchors } from "./verify.ts";
import { isStatement, verifyStatement } from "./verify-statement.ts";

async function run(args: CommandArguments, terminal: Terminal): Promise<number | void> {
  const path = args.operand;
  if (path === "") return await runConfigured(args, terminal);
  return await answer(await verifyPath(path, anchorsIn(args)), args, terminal);
}

async function verifyPath(path: string, anchors: TrustAnchors) {
  if (!existsSync(path)) throw new Error(`${path} is not there`);
  if (!statSync(path).isDirectory()) return verifyStatement(readStatement(path), anchors);
  const names = ["spend", "usage", "days.jsonl"];
  if (!names.some((name) => existsSync(join(path, name))))
    throw new Error(`${path} holds no books: it has none of ${names.join(", ")}`);
  const records = existsSync(join(path, "usage")) ? "files" : undefined;
  return await verifyBooks({ dataDir: resolve(path), records }, anchors);
}

/** Verifies the data_dir of the configuration, and its usage records in files or a database. */
const runConfigured = withBooks(async (context) => {
  const { books, args, terminal } = context;
  assertSpendLog(context);
  // The lock stops the sync: a record that is copied after its segment is read looks inserted.
  const verified = await books.locked(() => verifyBooks(booksToProve(context), anchorsIn(args)));
  return await answer(verified, args, terminal);
});

function anchorsIn({ values }: CommandArguments): TrustAnchors {
  const keyFile = values["public-key"];
  const keptFile = values["head"];
  return {
    publicKey: keyFile === undefined ? undefined : readPublicKey(keyFile),
    keptLines: keptFile === undefined ? [] : readKeptFile(keptFile),
  };
}

function readKeptFile(path: string): readonly string[] {
  const keptLines = findKeptLines(readFileSync(path, "utf8"));
  if (keptLines.length === 0) throw new Error(`${path} holds no head, and no line that names one`);
  return keptLines;
}

function readPublicKey(path: string): string {
  const text = readFileSync(path, "utf8");
  try {
    return publicHexOf(text);
  } catch (error) {
    throw new Error(`${path} holds no public key of seals: ${(error as Error).message}`);
  }
}

function readStatement(path: string): string {
  const text = readFileSync(path, "utf8");
  if (!isStatement(text))
    throw new UsageError(
      `${path} is neither a data_dir nor a sealed statement; ` +
        "segments and usage records are verified with their data_dir",
    );
  if (!parseJson(text)) throw new Error(`${path} cannot be read: it was cut off or damaged`);
  return text;
}

/** Prints the result. Returns the exit code: 1 if something is wrong, or nothing is proved. */
async function answer(
  { result, lines }: Awaited<ReturnType<typeof verifyPath>>,
  args: CommandArguments,
  terminal: Terminal,
): Promise<number> {
  const { public_key: key, key_stated, ok, findings } = result;
  const source = key_stated
    ? "as stated by --public-key"
    : "as the files state it: whoever can write them can replace it";
  const keyLine = key === null ? "key: none; nothing is signed" : `key: ${key}, ${source}`;
  let verdict = ok ? "nothing was changed" : "nothing is proved: no day is closed";
  if (findings.length > 0)
    verdict = ["something was changed, removed or damaged:", ...findings].join("\n  ");
  await terminal.printResult(args, result, `${[keyLine, ...lines, verdict].join("\n")}\n`);
  return ok ? 0 : 1;
}

export const verifyCommand: Command = {
  summary: "verify the books, or a sealed statement, from their files alone",
  operand: "PATH",
  operandOptional: true,
  operandHelp: "a data_dir or a sealed statement (default: the books of the configuration)",
  example: "seal verify statement.json --public-key public-key.pem --head head.json",
  options: {
    "public-key": {
      value: "FILE",
      help: "the public key of the installation, in PEM",
      fallback: "the one in the files",
    },
    head: {
      value: "FILE",
      help: "heads that you kept elsewhere, or log lines that contain them",
    },
    json: JSON_OPTION,
  },
  run,
};
