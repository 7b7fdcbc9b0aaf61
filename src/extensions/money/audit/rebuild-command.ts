// `books rebuild`: projects again. A day is made anew where its records are not what the spend log
// and days.jsonl say; a closed day only if it then is what its line says. Records whose lines are
// gone stay as they are.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { syncToDisk } from "../../data-files/index.ts";
import {
  usageRecord,
  type LogCursor,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import { createCoverage, type ClosedDay } from "../days/index.ts";
import { bookSizes, withBooks, withProgress, type BooksContext } from "../books/index.ts";
import { createRecordAdder, createSegmentReader, differencesFrom } from "../usage/index.ts";
import {
  createFindings,
  proveBooks,
  type BooksProof,
  type DayCounts,
  type Findings,
  type RecordSource,
} from "../proof/index.ts";
import { sourceOf } from "./record-source.ts";
import { collectTotals } from "./totals.ts";

/** What a rebuild did. `books rebuild --json` prints it. */
export interface RebuildResult extends DayCounts {
  /** Closed days that were left, because what was made anew is not what their lines say. */
  readonly not_rebuilt: readonly string[];
  /** What was wrong before. */
  readonly mended: readonly string[];
}

const run = withBooks(async (context) => {
  const { books, config, args, terminal } = context;
  if (!existsSync(books.spendDir))
    throw new Error(`there is no spend log in ${config.data_dir} to make usage records from`);
  const { mended, ...result } = await withProgress(
    context,
    "rebuild",
    () => bookSizes(context).spend + bookSizes(context).usage(),
    () => books.locked(() => rebuildBooks(context)),
  );
  for (const fault of mended) terminal.warn(`was wrong: ${fault}`);
  const { added, changed, removed, unchanged, left, not_rebuilt } = result;
  for (const fault of not_rebuilt) terminal.warn(`warning: ${fault}`);
  const text =
    `usage records: ${added} added, ${changed} changed, ${removed} removed, ` +
    `${unchanged} as the spend log has them; ` +
    `${left} have no lines there and were left as they were\n`;
  await terminal.answer(args, result, text);
  return not_rebuilt.length > 0 ? 1 : 0;
});

/** Rebuilds the usage records. The caller holds the lock of the books. */
async function rebuildBooks({ books, config }: BooksContext): Promise<RebuildResult> {
  const { spendDir, store } = books;
  const [findings, unproved] = [createFindings(), createFindings()];
  for (const { detail } of await store.inspect()) findings.add("the usage records", detail);
  const days = books.days.all().map(({ closed }) => closed);
  const source = await sourceOf(books, config, findings);
  const totals = collectTotals();
  const proof = await proveBooks({ spendDir, days, source, reads: "rebuild", findings, totals });
  // A power failure must not take lines from the spend log that the usage records have.
  for (const name of Object.keys(proof.cursor)) await syncToDisk(join(spendDir, name));
  // A rebuild that dies leaves each segment with less than the cursor says, so that nothing is
  // copied before the next rebuild.
  await store.setCursor(cursorOf(proof, 1));
  const sum = { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0 };
  const sources = { spendDir, days, proof, source };
  for (const { day, counts, isProved } of totals.days) {
    const isRight = counts.added + counts.changed + counts.removed === 0 && isProved;
    const isDone = isRight || (await putInPlace(store, sources, day, unproved));
    // What is kept of a closed day beside its records may be lost or wrong.
    if (isRight && days.some((line) => line.day === day)) await store.finish(day);
    if (!isDone) sum.left += counts.changed + counts.removed + counts.unchanged + counts.left;
    else for (const name of Object.keys(sum) as (keyof DayCounts)[]) sum[name] += counts[name];
  }
  await store.setCursor(cursorOf(proof, 0));
  return { ...sum, not_rebuilt: unproved.list(), mended: findings.list() };
}

/**
 * Puts the records of a day in place, unless its line says others. Resolves with whether it did.
 */
async function putInPlace(
  store: UsageStore,
  sources: DaySources,
  day: string,
  unproved: Findings,
): Promise<boolean> {
  const read = () => recordsOf(sources, day);
  if (!(await isAsClosed(sources.days, day, read, unproved))) return false;
  await store.replaceDay(day, read());
  return true;
}

/** How far the segments were read, and so many bytes more. */
const cursorOf = ({ cursor }: BooksProof, more: number): LogCursor =>
  Object.fromEntries(
    Object.entries(cursor)
      .filter(([, { bytes }]) => bytes > 0)
      .map(([name, at]) => [name, { ...at, bytes: at.bytes + more }]),
  );

/** Whether the records of a day may be replaced: it is open, or they are what its line says. */
async function isAsClosed(
  days: readonly ClosedDay[],
  day: string,
  read: () => AsyncIterable<readonly UsageRecord[]>,
  unproved: Findings,
): Promise<boolean> {
  const closed = days.find((line) => line.day === day);
  if (!closed) return true;
  const adder = createRecordAdder();
  for await (const records of read())
    adder.add(records.map((record) => ({ text: JSON.stringify(record), record })));
  const unequal = differencesFrom(closed, adder.result());
  if (unequal.length > 0)
    unproved.add(
      `the usage records of ${day}`,
      "were left as they are, because the spend log does not have what line " +
        `${closed.number} of days.jsonl says: ${unequal.join(", ")}`,
    );
  return unequal.length === 0;
}

/** What the records of a day are made of. */
interface DaySources {
  readonly spendDir: string;
  readonly days: readonly ClosedDay[];
  readonly proof: BooksProof;
  readonly source: RecordSource;
}

/** The records of a day in the order of the log: by segment, then by line. */
async function* recordsOf(
  sources: DaySources,
  day: string,
): AsyncGenerator<readonly UsageRecord[]> {
  const { cursor } = sources.proof;
  const kept = keptRecords(sources, day);
  let next = await kept.next();
  for (const segment of Object.keys(cursor).sort()) {
    for (; !next.done && next.value.log!.segment < segment; next = await kept.next())
      yield [next.value];
    for await (const records of settledOn(sources, segment, day)) yield records;
  }
  for (; !next.done; next = await kept.next()) yield [next.value];
}

/** Those whose segments are gone, or shorter. */
async function* keptRecords(
  { source, proof }: DaySources,
  day: string,
): AsyncGenerator<UsageRecord> {
  for await (const { lines } of source.linesOf(day))
    for (const { record } of lines) {
      if (!record?.log) continue;
      const { segment, line } = record.log;
      if (line > (proof.cursor[segment]?.lines ?? 0)) yield record;
    }
}

/** The records of a segment that are booked on a day. */
async function* settledOn(
  { spendDir, days, proof }: DaySources,
  segment: string,
  day: string,
): AsyncGenerator<readonly UsageRecord[]> {
  const coverage = createCoverage(days);
  const { bytes } = proof.cursor[segment]!;
  // A segment has the requests of the day in its name and of later ones, up to the day on which
  // the last line was made that has all of it.
  const last = coverage.of(segment).at(-1);
  const madeAt = last?.bytes === bytes && days.find((line) => line.day === last.day)?.made_at;
  if (segment.slice(0, 10) > day || (madeAt && madeAt.slice(0, 10) < day)) return;
  const reader = createSegmentReader(join(spendDir, segment), segment);
  for await (const { settled } of reader.read(bytes))
    yield settled
      .map(({ settle, log }) =>
        usageRecord(settle, coverage.bookedDay(segment, log.line, settle.time), log),
      )
      .filter((record) => record.day === day);
}

/** Rebuilds the usage records from the spend log, which must be there. */
export const rebuildCommand: Command = {
  summary: "make the usage records anew from the spend log, and tell what that changed",
  example: "books rebuild --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
