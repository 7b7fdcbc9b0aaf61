// The usage store in files, one a day. Sums and the index of a closed day are made when it closes;
// those of an open day are held in memory and grow with its file.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { replaceFile } from "../../scale/data-files/index.ts";
import type { Days } from "../days/index.ts";
import {
  createSummer,
  parseSums,
  parseUsageLine,
  sumsText,
  withoutDetails,
  type Dimension,
  type StoreFault,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import { createDayFiles, type DayFiles } from "./day-files.ts";
import { createDayIndex, createOpenDays } from "./day-index.ts";
import { createFinder, indexOf, lostIndex } from "./find.ts";
import { lineMatcher, linesIn, orderedLines, recordIn, SOUGHT, type Texts } from "./lines.ts";
import { mergeIntoMonth } from "./request-ids.ts";

/** The store in the folder `dir`. */
export function createFileStore(dir: string, closedDays: Days): UsageStore {
  const files = createDayFiles(dir, closedDays);
  const readOpenDay = createOpenDays(files);

  function daysOf({ month = "", day, from = "", to = "9999-12-31" }: UsageFilter): string[] {
    const isMeant = (name: string): boolean =>
      name.startsWith(month) && name === (day ?? name) && name >= from && name <= to;
    return files.days().filter(isMeant);
  }

  /** The lines of a day in the order of the log. */
  async function* linesOf(day: string): Texts {
    for await (const { lines } of orderedLines(files.pathOf(day), files.bytesOf(day)))
      yield lines.map(({ text }) => text);
  }

  async function sumsOfDay(day: string): Promise<readonly SumBy<Dimension>[]> {
    const kept = files.besideOf(`${day}.sums`);
    const isKept = files.isClosed(day) && files.bytesOf(day) > 0 && existsSync(kept);
    if (isKept) return parseSums(readFileSync(kept, "utf8"));
    return (await readOpenDay(day)).summer.sums();
  }

  return {
    cursor: async () => files.read().segments,
    async inspect() {
      const damage = files.damage();
      if (damage.length === 0) return lostIndexes(files);
      return damage.map((detail) => ({ event: "usage_records_damaged", detail, blocks: true }));
    },
    add: (records, cursor) => files.append(textsByDay(records), cursor),
    days: async () => files.days(),
    async *linesOf(day) {
      for await (const texts of linesOf(day))
        yield texts.map((text) => ({ text, record: parseUsageLine(text) }));
    },
    async finish(day) {
      if (files.bytesOf(day) > 0) await putInPlace(files, day, linesOf(day));
    },
    replaceDay: (day, records) => putInPlace(files, day, textsOf(records)),
    setCursor: files.setSegments,
    async *records(filter, skip = 0) {
      const matches = lineMatcher(filter);
      let toSkip = skip;
      for (const day of daysOf(filter)) {
        const path = files.pathOf(day);
        for await (const lines of linesIn(path, files.bytesOf(day))) {
          const matching = lines.filter(matches);
          yield matching.slice(toSkip).map((line) => withoutDetails(recordIn(path, line)));
          toSkip = Math.max(0, toSkip - matching.length);
        }
      }
    },
    find: createFinder(files, readOpenDay),
    async sums(filter, by) {
      const summer = createSummer(by);
      const sought = SOUGHT.filter((name) => filter[name] !== undefined);
      for (const day of daysOf(filter))
        for (const sum of await sumsOfDay(day))
          if (sought.every((name) => sum[name] === filter[name])) summer.add(sum);
      return summer.sums();
    },
    close: async () => undefined,
  };
}

const monthOf = (day: string): string => day.slice(0, 7);

/** The months of closed days whose index is gone: receipts of these days cannot be looked up. */
function lostIndexes(files: DayFiles): readonly StoreFault[] {
  const months = new Set(files.days().filter(files.isClosed).map(monthOf));
  return [...months].flatMap((month) => {
    const path = indexOf(files, month);
    if (existsSync(path)) return [];
    return [{ event: "usage_index_lost", detail: lostIndex(path), blocks: false }];
  });
}

/** The lines of records, by the day on which they are booked. */
function textsByDay(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const record of records)
    texts.set(record.day, `${texts.get(record.day) ?? ""}${JSON.stringify(record)}\n`);
  return texts;
}

async function* textsOf(records: AsyncIterable<readonly UsageRecord[]>): Texts {
  for await (const batch of records) yield batch.map((record) => JSON.stringify(record));
}

/**
 * Puts lines, in the order of the log, in the place of a day's, and makes their sums and their
 * index.
 */
async function putInPlace(files: DayFiles, day: string, lines: Texts): Promise<void> {
  const path = files.pathOf(day);
  const index = createDayIndex(path, day);
  async function* content(): AsyncGenerator<string> {
    for await (const batch of lines) {
      index.add(batch);
      yield batch.map((line) => `${line}\n`).join("");
    }
  }
  mkdirSync(files.besideOf(""), { recursive: true, mode: 0o700 });
  await writeFile(`${path}.new`, content(), { mode: 0o600, flush: true });
  await files.replace(day, `${path}.new`, index.bytes());
  const month = monthOf(day);
  const isFirst = !files.days().some((other) => other < day && monthOf(other) === month);
  // A lost index must not come back with one day alone: a lookup would miss the others in silence.
  if (isFirst || existsSync(indexOf(files, month)))
    await mergeIntoMonth(indexOf(files, month), day, index.ids);
  await replaceFile(files.besideOf(`${day}.sums`), sumsText(index.summer.sums()));
}
