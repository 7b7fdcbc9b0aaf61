// `seal verify`: verifies a data_dir, a segment or a sealed statement, and prints what is proved.
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  JSON_OPTION,
  UsageError,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../command-line/command.ts";
import { asObject, parseJson } from "../../core/schema/untrusted-json.ts";
import { systemClock } from "../../core/clock.ts";
import { hasFileStore, openBooks } from "../books/index.ts";
import { publicHexOf } from "../seals/index.ts";
import type { GoneSegment } from "./verify-segments.ts";
import { verifyBooks, type OtherRecords, type Verification } from "./verify-books.ts";
import type { Trust } from "./verify-heads.ts";
import { monthsInStore, type MonthProof } from "./verify-records.ts";
import { verifySegment, type SegmentVerification } from "./verify-segment.ts";
import { isStatement, verifyStatement, type StatementVerification } from "./verify-statement.ts";

/** What a data_dir has, or one of it. */
const FOLDERS = ["spend", "usage", "seals"];

async function run(args: CommandArguments, terminal: Terminal): Promise<number> {
  const trust = trustOf(args);
  const path = args.operand;
  if (path === "") return await verifyConfigured(args, terminal, trust);
  if (!existsSync(path)) throw new Error(`${path} is not there`);
  if (statSync(path).isDirectory()) {
    if (!FOLDERS.some((name) => existsSync(join(path, name))))
      throw new Error(`${path} holds no books: it has none of the folders ${FOLDERS.join(", ")}`);
    return await answer(args, terminal, await verifyBooks(resolve(path), trust));
  }
  const text = readFileSync(path, "utf8");
  if (isStatement(text)) {
    if (!parseJson(text)) throw new Error(`${path} cannot be read: it was cut off or damaged`);
    const result = verifyStatement(text, trust);
    await terminal.answer(args, result, statementText(result));
    return result.ok ? 0 : 1;
  }
  if (/^\d{4}-\d\d-\d\d\..*\.jsonl$/.test(basename(path)))
    return await verifyOneSegment(args, terminal, path);
  throw new UsageError(
    `${path} is neither a data_dir, nor a segment of a spend log, nor a sealed statement; ` +
      "usage records of a month are verified with their data_dir",
  );
}

function trustOf({ values }: CommandArguments): Trust {
  const keyFile = values["public-key"];
  const headFile = values["head"];
  return {
    publicKey: keyFile === undefined ? undefined : readPublicKey(keyFile),
    kept: headFile === undefined ? [] : readKept(headFile),
  };
}

/**
 * The heads in a file, or the lines of a log that name heads. Other lines of a log are left out.
 */
function readKept(path: string): readonly string[] {
  const kept = readFileSync(path, "utf8").split("\n").filter(isKept);
  if (kept.length === 0) throw new Error(`${path} holds no head, and no line that names one`);
  return kept;
}

function isKept(line: string): boolean {
  const event = asObject(parseJson(line))["event"] ?? "seal_head";
  return line.trim() !== "" && event === "seal_head";
}

function readPublicKey(path: string): string {
  const text = readFileSync(path, "utf8");
  try {
    return publicHexOf(text);
  } catch (error) {
    throw new Error(`${path} holds no public key of seals: ${(error as Error).message}`);
  }
}

/** Verifies the data_dir of the configuration, and the usage records where they are. */
async function verifyConfigured(
  args: CommandArguments,
  terminal: Terminal,
  trust: Trust,
): Promise<number> {
  const { config, extensions } = await terminal.load(args, { withoutSecrets: true });
  const dataDir = resolve(config.data_dir);
  if (!existsSync(join(dataDir, "spend"))) throw new Error(`there is no spend log in ${dataDir}`);
  if (hasFileStore(config)) return await answer(args, terminal, await verifyBooks(dataDir, trust));
  const diagnose = (event: object): void => terminal.warn(JSON.stringify(event));
  const { store } = openBooks(config, { clock: systemClock, diagnose, extensions });
  const today = new Date(systemClock.now()).toISOString();
  const inStore: OtherRecords = (firstDay) => monthsInStore(store, firstDay, today);
  const result = await verifyBooks(dataDir, trust, inStore).finally(() => store.close());
  return await answer(args, terminal, result);
}

async function answer(
  args: CommandArguments,
  terminal: Terminal,
  result: Verification,
): Promise<number> {
  await terminal.answer(args, result, booksText(result));
  return result.ok ? 0 : 1;
}

async function verifyOneSegment(
  args: CommandArguments,
  terminal: Terminal,
  path: string,
): Promise<number> {
  const trust = trustOf(args);
  const result = await verifySegment(path, trust);
  await terminal.answer(args, result, segmentVerificationText(result, trust));
  return result.ok ? 0 : 1;
}

/** A verification of a segment for people. */
function segmentVerificationText(result: SegmentVerification, { kept }: Trust): string {
  const { compared, segments, findings } = result;
  const heads =
    compared.length > 0
      ? `compared with ${compared.length} heads that were kept`
      : "compared with no head: none of those that were kept names this segment";
  const lines = [segmentText(segments[0]), ...(kept.length > 0 ? [heads] : [])];
  return [...lines, ...verdict(result.ok, findings), ""].join("\n");
}

/** A verification for people. */
function booksText(result: Verification): string {
  const { heads, segments, months } = result;
  const lines = [
    keyText(result.public_key, result.key_stated) +
      (heads.count === 0 && result.public_key !== null ? "; no head is signed with it yet" : ""),
    heads.count > 0
      ? `heads: ${heads.count} of closed days, from ${heads.from} to ${heads.to}`
      : "heads: none; no day was closed since seals were switched on",
    ...goneTexts(result.gone),
    ...segments.map(segmentText),
    ...(months?.map(monthText) ?? [
      "usage records: there are none in files here, and nothing is said of others",
    ]),
    ...(result.awaited > 0
      ? [`on the way into the usage records: ${result.awaited} requests`]
      : []),
  ];
  return [...lines, ...verdict(result.ok, result.findings), ""].join("\n");
}

const keyText = (publicKey: string | null, isStated: boolean): string => {
  if (publicKey === null) return "key: none; nothing is signed";
  if (isStated) return `key: ${publicKey}, as stated by --public-key`;
  return `key: ${publicKey}, as the files state it: whoever can write them can replace it`;
};

function segmentText({
  file,
  lines,
  sealed,
  head,
  unsealed,
  torn_bytes,
  named_as,
}: Verification["segments"][number]): string {
  const known = named_as === undefined ? "" : `; heads know it as ${named_as}`;
  const torn =
    torn_bytes > 0 ? `; its last line is torn: ${torn_bytes} bytes that count for nothing` : "";
  if (sealed === 0)
    return `${file}: ${lines} lines, not sealed: nothing proves them${torn}${known}`;
  const tail = unsealed > 0 ? `; ${unsealed} lines after them are not sealed` : "";
  const proof = head === null ? "no head has the last of them yet" : `${head} has the last of them`;
  return `${file}: ${sealed} lines sealed, ${proof}${tail}${torn}${known}`;
}

/** So many segments that are gone are named one by one: those of years are thousands. */
const MAX_GONE = 50;

function goneTexts(gone: readonly GoneSegment[]): readonly string[] {
  const last = gone.slice(-MAX_GONE);
  const earlier = gone.length - last.length;
  return [
    ...(earlier > 0 ? [`${earlier} segments before ${last[0]?.file} are gone as well`] : []),
    ...last.map(
      ({ file, lines, head }) =>
        `${file}: gone; ${lines} lines were proved by ${head} until it was deleted`,
    ),
  ];
}

function monthText(month: MonthProof): string {
  const rest =
    month.uncounted_bytes > 0 ? `; ${month.uncounted_bytes} bytes after them do not count` : "";
  return (
    `${month.file}: ${month.records} records: ${month.by_head} proved by heads, ` +
    `${month.by_log} by sealed lines of the spend log, ${month.not_proved} not proved${rest}` +
    anewText(month)
  );
}

/** What heads do not prove of a month, because its file is not the one that they have. */
function anewText({ written_anew: anew, details_not_proved: details = 0 }: MonthProof): string {
  const bytes = anew
    ? `; the file was written anew since the head of ${anew.since}: ` +
      `the ${anew.bytes} bytes that heads have of it cannot be compared`
    : "";
  return details > 0 ? `${bytes}; the details of ${details} records are not proved` : bytes;
}

/** A verification of a statement for people. */
function statementText(result: StatementVerification): string {
  const { account, month, records, by_head, not_proved, compared } = result;
  const lines = [
    keyText(result.public_key, result.key_stated),
    `statement of ${account} for ${month}: ${records} records: ${by_head} proved by heads, ` +
      `${not_proved} of days without a head`,
    compared.length > 0
      ? `compared with heads that were kept: ${compared.join(", ")}`
      : "compared with no head that was kept elsewhere",
  ];
  return [...lines, ...verdict(result.ok, result.findings), ""].join("\n");
}

/** Without findings nothing was changed, unless there is nothing that could show a change. */
function verdict(isOk: boolean, findings: readonly string[]): readonly string[] {
  if (isOk) return ["nothing was changed"];
  if (findings.length === 0) return ["nothing is proved: no line here is sealed"];
  return ["something was changed, removed or damaged:", ...findings.map((each) => `  ${each}`)];
}

export const verifyCommand: Command = {
  summary: "verify sealed books, or a sealed statement, by their files alone",
  operand: "PATH",
  operandOptional: true,
  operandMeaning:
    "a data_dir, a segment or a sealed statement (default: the books of the configuration)",
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
