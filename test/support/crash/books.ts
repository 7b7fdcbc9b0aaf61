// The books of the gateways that are killed, read and judged as scripts/reconcile does it, and what
// `audit`, statements and `seal verify` say of them.

import {
  type Entry,
  judgeRecords,
  readEntries,
  recordOf,
} from "../../../scripts/reconcile/books.ts";
import { emptyEstate, readFiles } from "../../../scripts/reconcile/estate.ts";
import { createFindings } from "../../../scripts/reconcile/findings.ts";
import type { Estate, Line } from "../../../scripts/reconcile/house.ts";
import { pico, sum } from "../../../scripts/reconcile/money.ts";
import { judgeProjection } from "../../../scripts/reconcile/projection.ts";
import { judgeLines } from "../../../scripts/reconcile/seals.ts";
import { type Program, runToEnd, tomorrow } from "../program.ts";
import { ACCOUNTS } from "./setup.ts";

/** The spend log of some data_dirs. */
export interface Books {
  readonly entries: readonly Entry[];
  readonly segments: number;
  readonly violations: readonly string[];
  readonly estates: readonly Estate[];
}

/** Every open with its settle; what is not one open and one settle is told. */
export function readSpend(dataDirs: readonly string[]): Books {
  const findings = createFindings("books");
  const estates = dataDirs.map((dataDir) => readFiles(emptyEstate(), dataDir));
  const entries = readEntries({ estates }, findings);
  const segments = estates.flatMap((estate) => estate.segments).length;
  return { entries, segments, violations: findings.violations, estates };
}

/** Every line of `usage/*.jsonl`. */
export const readUsageFiles = (dataDirs: readonly string[]): Line[] =>
  dataDirs
    .flatMap((dataDir) => readFiles(emptyEstate(), dataDir).usageFiles)
    .flatMap(({ text }) => text.split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as Line);

/** What a judge of scripts/reconcile finds. `rows`: the records are in a database. */
function judged(
  { entries, estates }: Books,
  rows: Line[] | undefined,
  judge: typeof judgeRecords,
): readonly string[] {
  const findings = createFindings("books");
  judge({ estates, rows }, entries, findings);
  return findings.violations;
}

/** The usage records against the spend log: each settled request once, as it was settled. */
export const checkRecords = (books: Books, rows?: Line[]): readonly string[] =>
  judged(books, rows, judgeRecords);

const costOf = (entries: readonly Entry[]): bigint =>
  sum(entries.map(({ settle }) => pico(settle["cost"])));

/** `audit` of one data_dir, against a count and a sum of our own. */
export async function checkAudit(
  program: Program,
  config: string,
  dataDir: string,
): Promise<string[]> {
  const { code, stdout, stderr } = await runToEnd(program, ["audit", "--json", "--config", config]);
  if (code !== 0) return [`audit of ${dataDir}: exit ${code}: ${stdout.slice(0, 2_000)} ${stderr}`];
  const found = JSON.parse(stdout);
  const { entries } = readSpend([dataDir]);
  const cost = costOf(entries);
  const right =
    found.ok === true &&
    found.differences.length === 0 &&
    found.in_flight === 0 &&
    found.settled === entries.length &&
    found.recorded === entries.length &&
    pico(found.cost_settled.USD ?? "0") === cost &&
    pico(found.cost_recorded.USD ?? "0") === cost;
  const ours = `${entries.length} settled for ${cost} pico-units`;
  return right ? [] : [`audit of ${dataDir}: ${stdout.slice(0, 2_000)}, against ${ours}`];
}

/** Every statement that there can be, against sums of our own over the spend log. */
export async function checkStatements(
  program: Program,
  config: string,
  { entries }: Books,
): Promise<string[]> {
  const months = [...new Set(entries.map(({ day }) => day.slice(0, 7)))];
  async function check(account: string, month: string): Promise<string[]> {
    const of = ["--account", account, "--month", month, "--format", "json", "--config", config];
    const { code, stdout, stderr } = await runToEnd(program, ["billing", "statement", ...of]);
    const what = `statement of ${account}, ${month}`;
    if (code !== 0) return [`${what}: exit ${code}: ${stderr}`];
    const own = entries.filter(
      ({ settle, day }) => settle["account"] === account && day.startsWith(month),
    );
    const models = [...new Set(own.map((entry) => recordOf(entry)["model"] as string))];
    const ours = models.map((model) => {
      const some = own.filter((entry) => recordOf(entry)["model"] === model);
      const tokens = some.reduce((sum, { settle }) => sum + settle["usage"].completion_tokens, 0);
      return `${model} ${some.length} ${tokens} ${costOf(some)}`;
    });
    const { lines, total } = JSON.parse(stdout);
    const theirs = lines.map(
      ({ model, requests, completion_tokens, cost }: Line) =>
        `${model} ${requests} ${completion_tokens} ${pico(cost)}`,
    );
    const right =
      ours.sort().join("; ") === theirs.sort().join("; ") && pico(total.cost) === costOf(own);
    return right ? [] : [`${what}: ${stdout} ${stderr}, against ${ours.join("; ")}`];
  }
  const all = months.flatMap((month) => ACCOUNTS.map((account) => check(account, month)));
  return (await Promise.all(all)).flat();
}

/** Books at rest, whose days are to be closed. */
export interface Rest {
  readonly program: Program;
  readonly configs: readonly string[];
  readonly dataDirs: readonly string[];
  /** The lines of days are signed. */
  readonly seals: boolean;
  /** The rows of the database, if the records are there. */
  readonly records: Line[] | undefined;
}

/** Closes the days as of tomorrow, and computes anew what is then in the files. */
export async function checkDays(rest: Rest): Promise<readonly string[]> {
  const { configs, dataDirs, seals, records } = rest;
  const program = tomorrow(rest.program);
  const violations: string[] = [];
  async function run(config: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runToEnd(program, [...args, "--config", config]);
    if (code !== 0) violations.push(`${args.join(" ")}: exit ${code}: ${stdout} ${stderr}`);
    return stdout;
  }
  const keys: string[] = [];
  for (const config of configs) {
    await run(config, "usage", "sync", "--once");
    if (!seals) continue;
    const publicKey = await run(config, "seal", "public-key");
    await run(config, "seal", "verify");
    keys.push(publicKey);
  }
  const books = readSpend(dataDirs);
  for (const [index, estate] of books.estates.entries())
    Object.assign(estate, { publicKey: keys[index] ?? "" });
  return [
    ...violations,
    ...checkRecords(books, records),
    ...judged(books, records, judgeProjection),
    ...judged(books, records, judgeLines),
  ];
}
