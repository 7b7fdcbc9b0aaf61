// `books rebuild`: makes the records again of each day that differs from the spend log and
// days.jsonl. It replaces a closed day only if the result matches its line. Records whose log lines
// are gone are kept.
import { join } from "node:path";
import { JSON_OPTION, type Command } from "../../../command-line/command.ts";
import { syncToDisk } from "../../scale/data-files/index.ts";
import { assertSpendLog, withBooks, type BooksContext } from "../books/index.ts";
import {
  booksToProve,
  createFindings,
  proveBooks,
  type BooksProof,
  type DayProof,
} from "../proof/index.ts";
import type { SegmentCursor } from "../records/index.ts";
import { BooksFault, createCoverage, REPAIR, REBUILDING, type Coverage } from "../days/index.ts";
import { createRecordAdder, differencesFrom } from "../usage/index.ts";

const run = withBooks(async (context) => {
  const { books, args, terminal } = context;
  assertSpendLog(context);
  const result = await books.locked(() => rebuildBooks(context));
  const { added, changed, removed, unchanged, left, not_rebuilt } = result;
  for (const fault of not_rebuilt) terminal.warn(`warning: ${fault}`);
  const text =
    `usage records: ${added} added, ${changed} changed, ${removed} removed, ` +
    `${unchanged} as the spend log has them; ` +
    `${left} have no lines there and were left as they were\n`;
  await terminal.printResult(args, result, text);
  return not_rebuilt.length > 0 ? 1 : 0;
});

/** Rebuilds the usage records. The caller holds the lock of the books. */
async function rebuildBooks(context: BooksContext) {
  const { books, terminal } = context;
  const { spendDir, days, store } = books;
  // Throws if a line cannot be read: otherwise its day would count as open.
  const coverage = createCoverage(days.all().map(({ closed }) => closed));
  const findings = createFindings();
  // If inspect() fails, proveBooks() meets the same error.
  const faults = await store.inspect().catch(() => []);
  for (const { detail } of faults) findings.add("the usage records", detail);
  const proof = await proveBooks(booksToProve(context), findings);
  if (proof.copies[0] !== undefined) throw new BooksFault(`${proof.copies[0]}: ${REPAIR}`);
  for (const fault of findings.list()) terminal.warn(`was wrong: ${fault}`);
  // After a power failure the usage records must not hold requests that the spend log lost.
  for (const name of proof.segments.keys()) await syncToDisk(join(spendDir, name));
  // The cursor is ahead of every segment during a rebuild, so that no pass copies anything if the
  // rebuild is killed, even while a gateway writes.
  await store.setCursor(cursorOf(proof, coverage, "ahead"));
  const counted = await store.days();
  // The cursor does not count the records of a day whose line in days.jsonl is lost.
  const isCounted = ({ day, lines }: DayProof): boolean => lines === 0 || counted.includes(day);
  const not_rebuilt: string[] = [];
  const result = { added: 0, changed: 0, removed: 0, unchanged: 0, left: 0, not_rebuilt };
  for (const day of proof.days ?? []) {
    const { same, changed, missing, pending, inserted, unlogged, unreadable } = day.totals;
    const added = missing.records + pending.records;
    const removed = inserted.records + unreadable.records;
    const isRight = added + changed.records + removed === 0 && day.matchesLine && isCounted(day);
    const unequal = isRight ? [] : await differencesAnew(day);
    if (unequal.length > 0) {
      await store.acceptDamage(day.day);
      result.left += day.lines;
      not_rebuilt.push(
        `the usage records of ${day.day}: were left as they are, because the spend log does not ` +
          `have what line ${day.closed?.number} of days.jsonl says: ${unequal.join(", ")}`,
      );
      continue;
    }
    const remake = (): Promise<void> => store.replaceDay(day.day, day.records());
    // The stored sums and index of right records may be lost or wrong.
    await (isRight ? store.finish(day.day).catch(remake) : remake());
    result.added += added;
    result.changed += changed.records;
    result.removed += removed;
    result.unchanged += same.records;
    result.left += unlogged.records;
  }
  await store.setCursor(cursorOf(proof, coverage));
  return result;
}

/** How the new records of a day differ from its line. Empty for an open day: it has no line. */
async function differencesAnew({ closed, records }: DayProof): Promise<readonly string[]> {
  if (!closed) return [];
  const adder = createRecordAdder();
  for await (const batch of records())
    adder.add({ lines: batch.map((record) => ({ text: JSON.stringify(record), record })) });
  return differencesFrom(closed, adder.result());
}

/**
 * How far the segments were read. `ahead`: further than they can grow. A segment is cut if records
 * or closed days have lines beyond its end. A segment that is gone or empty, but has records, stays
 * in the cursor so that no new segment takes its name. Names in lines of closed days are safe
 * without that.
 */
function cursorOf({ segments, days = [] }: BooksProof, coverage: Coverage, ahead?: "ahead") {
  const read = [...segments].filter(([, { end }]) => end.bytes > 0);
  const names = new Set(read.map(([name]) => name));
  const cut = new Set(days.flatMap((day) => [...day.cutSegments]));
  const gone = [...cut]
    .filter((name) => !names.has(name) && coverage.of(name).length === 0)
    .map((name) => [name, GONE] as const);
  const reached = read.map(([name, { end }]) => {
    const bytes = ahead ? REBUILDING : end.bytes;
    const isCut = cut.has(name) || end.bytes < (coverage.of(name).at(-1)?.bytes ?? 0);
    const mark = isCut ? { isCut: true as const, unsettled: 0 } : {};
    return [name, { ...end, bytes, ...mark }] as const;
  });
  return Object.fromEntries([...gone, ...reached]);
}

/** The cursor of a segment that is gone. */
const GONE: SegmentCursor = { first: "", bytes: 0, lines: 0, unsettled: 0 };

/** Rebuilds the usage records from the spend log, which must be there. */
export const rebuildCommand: Command = {
  summary: "rebuild the usage records from the spend log, and say what changed",
  example: "books rebuild --config gateway.json",
  options: { json: JSON_OPTION },
  run,
};
