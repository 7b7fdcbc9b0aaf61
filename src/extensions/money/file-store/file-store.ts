// The usage store in files, one file a day. The sums and the index of a day are stored when it
// closes. Before that they are in memory, and grow with the file.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { setImmediate as endOfTurn } from "node:timers/promises";
import { replaceFile, writeDraft } from "../../scale/data-files/index.ts";
import { BooksFault, readLines, type Days } from "../days/index.ts";
import {
  createSummer,
  includesDay,
  parseSums,
  sumsText,
  withoutDetails,
  type Dimension,
  type SumBy,
  type UsageBatch,
  type UsageLine,
  type StoreFault,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import * as dayFiles from "./day-files.ts";
import { bytesOf, isClosed, pathOf, sumsFile, type DayFiles } from "./day-files.ts";
import {
  addLines,
  createDayIndex,
  createFinder,
  createIndexCheck,
  createOpenDays,
  indexFile,
  lostIndex,
  monthOf,
} from "./day-index.ts";
import { matcherOf, orderedLines, parseLine, recordOf, textMatcherOf } from "./lines.ts";
import { mergeIntoMonth } from "./request-ids.ts";

type Batches = AsyncIterable<{ readonly lines: readonly UsageLine[] }>;

/** Creates the store in the folder `dir`. */
export function createFileStore(dir: string, closedDays: Days): UsageStore {
  const files: DayFiles = { dir, closedDays };
  const readOpenDay = createOpenDays(files);

  return {
    async cursor() {
      dayFiles.assertWhole(files);
      return dayFiles.readCursor(dayFiles.cursorFile(files)).segments;
    },
    inspect: async () => lostIndexes(files),
    add: (records, cursor) => dayFiles.appendTexts(files, textsByDay(records), cursor),
    days: async () => dayFiles.daysOf(files),
    isOwn: () => true,
    linesOf: (day) => linesOf(files, day),
    async finish(day) {
      if (bytesOf(files, day) > 0) await replaceLines(files, day, linesOf(files, day));
    },
    replaceDay: (day, records) => replaceLines(files, day, linesFor(records)),
    acceptDamage: (day) => dayFiles.noteLost(files, day, true),
    setCursor: (cursor) => dayFiles.setSegments(files, cursor),
    async *records(filter) {
      const mayMatch = textMatcherOf(filter);
      const matches = matcherOf(filter);
      for (const day of daysThatMatch(files, filter)) {
        const path = pathOf(files, day);
        for await (const { lines } of readLines(path, { to: bytesOf(files, day) })) {
          const matching = lines
            .filter(mayMatch)
            .map((text) => recordOf(path, parseLine(text)))
            .filter(matches);
          yield matching.map(withoutDetails);
        }
      }
    },
    find: createFinder(files, readOpenDay),
    async sums(filter, by) {
      const summer = createSummer(by);
      const matches = matcherOf(filter);
      const known = dayFiles.bytesByDay(files);
      for (const day of daysThatMatch(files, filter)) {
        const sums = keptSums(files, day, known) ?? (await readOpenDay(day)).summer.sums();
        for (const sum of sums) if (matches(sum)) summer.add(sum);
        await endOfTurn(); // a day may have thousands of sums
      }
      return summer.sums();
    },
    close: async () => undefined,
  };
}

/**
 * The sums that were stored when a day closed. Undefined: there are none. Throws a BooksFault if
 * they are malformed, or if the file of the day is too short: its sums must not hide the loss.
 */
function keptSums(
  files: DayFiles,
  day: string,
  known: ReturnType<typeof dayFiles.bytesByDay>,
): readonly SumBy<Dimension>[] | undefined {
  const path = sumsFile(files, day);
  const isKept = bytesOf(files, day, known) > 0 && isClosed(files, day) && existsSync(path);
  if (!isKept) return undefined;
  try {
    return parseSums(readFileSync(path, "utf8"));
  } catch (error) {
    const reason = (error as Error).message;
    throw new BooksFault(`${path} cannot be read, and 'books rebuild' makes it anew: ${reason}`);
  }
}

const daysThatMatch = (files: DayFiles, filter: UsageFilter): readonly string[] =>
  dayFiles.daysOf(files).filter((day) => includesDay(filter, day));

/** The lines of records, by the day on which they are booked. */
function textsByDay(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const record of records)
    texts.set(record.day, `${texts.get(record.day) ?? ""}${JSON.stringify(record)}\n`);
  return texts;
}

/** The lines of a day in the order of the log. */
const linesOf = (files: DayFiles, day: string): AsyncIterable<UsageBatch> =>
  orderedLines(pathOf(files, day), bytesOf(files, day));

async function* linesFor(records: AsyncIterable<readonly UsageRecord[]>): Batches {
  for await (const batch of records)
    yield { lines: batch.map((record) => ({ text: JSON.stringify(record), record })) };
}

/** The months whose index is gone or incomplete: receipts of closed days cannot be found. */
function lostIndexes(files: DayFiles): readonly StoreFault[] {
  const closed = dayFiles.daysOf(files).filter((day) => isClosed(files, day));
  const isWholeIndex = createIndexCheck(files);
  return [...new Set(closed.map(monthOf))]
    .filter((month) => !isWholeIndex(month))
    .map((month) => lostIndex(indexFile(files, month)))
    .map((detail) => ({ event: "usage_index_lost", detail }));
}

/** Replaces the file of a day by lines in the order of the log, and stores their sums and index. */
async function replaceLines(files: DayFiles, day: string, batches: Batches): Promise<void> {
  const path = pathOf(files, day);
  const index = createDayIndex(path, day);
  async function* content(): AsyncGenerator<string> {
    for await (const { lines } of batches) {
      addLines(index, lines);
      yield lines.map(({ text }) => `${text}\n`).join("");
    }
  }
  mkdirSync(files.dir, { recursive: true, mode: 0o700 });
  const draft = await writeDraft(path, content());
  await dayFiles.replaceDayFile(files, day, draft, index.bytes);
  const month = monthOf(day);
  // The entries of an open day would stand in for lost ones until the day has its line.
  if (isClosed(files, day) || createIndexCheck(files)(month))
    await mergeIntoMonth(indexFile(files, month), day, index.ids);
  await replaceFile(sumsFile(files, day), sumsText(index.summer.sums()));
}
