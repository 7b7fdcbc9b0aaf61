// The usage store in files, one a day. Sums and the index of a closed day are made when it closes;
// those of an open day are held in memory and grow with its file.
import { existsSync, readFileSync } from "node:fs";
import type { Days } from "../days/index.ts";
import {
  createSummer,
  parseSums,
  type Dimension,
  type ReadFilter,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../records/index.ts";
import { createDayFiles } from "./day-files.ts";
import { find } from "./find.ts";
import { finish, linesOf, replaceDay } from "./finish.ts";
import { lineMatcher } from "./lines.ts";
import { createOpenDays } from "./open-days.ts";
import { bytesOf, daysOf, recordIn, textsOf, type Source } from "./source.ts";

/** The store in the folder `dir`. `days` tells which days are closed. */
export function createFileStore(dir: string, days: Days): UsageStore {
  const files = createDayFiles(dir, days);
  const source: Source = { files, days, openDays: createOpenDays(files) };

  return {
    cursor: async () => files.read().segments,
    inspect: async () => files.faults(),
    add: (records, cursor) => files.append(textsByDay(records), cursor),
    days: async () => daysOf(source, {}),
    linesOf: (day) => linesOf(source, day),
    finish: (day) => finish(source, day),
    replaceDay: (day, read) => replaceDay(source, day, read),
    setCursor: files.setSegments,
    records: (filter) => readRecords(source, filter),
    find: (query) => find(source, query),
    sums: (filter, by) => sums(source, filter, by),
    close: async () => undefined,
  };
}

/** The lines of records, by the day on which they are booked. */
function textsByDay(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const record of records)
    texts.set(record.day, `${texts.get(record.day) ?? ""}${JSON.stringify(record)}\n`);
  return texts;
}

async function* readRecords(
  source: Source,
  filter: ReadFilter,
): AsyncGenerator<readonly UsageRecord[]> {
  const matches = lineMatcher(filter);
  let toSkip = filter.skip ?? 0;
  for (const day of daysOf(source, filter)) {
    for await (const texts of textsOf(source, day)) {
      if (filter.cancel?.aborted) throw filter.cancel.reason;
      const matching = texts.filter(matches);
      const wanted = matching.slice(toSkip);
      toSkip = Math.max(0, toSkip - matching.length);
      const records = wanted.map((text) => recordIn(source, day, text));
      for (const record of records as { details?: unknown; log?: unknown }[]) {
        delete record.details; // Only find() yields them.
        delete record.log;
      }
      if (records.length > 0) yield records;
    }
  }
}

/** The sums of an open day grow with its file; those of a closed day were made when it closed. */
async function sums<D extends Dimension>(
  source: Source,
  filter: UsageFilter,
  by: readonly D[],
): Promise<readonly SumBy<D>[]> {
  const { account, model, keyId, provider } = filter;
  const wanted = Object.entries({ account, model, key_id: keyId, provider }).filter(
    ([, value]) => value !== undefined,
  ) as [Dimension, string][];
  const summer = createSummer(by);
  for (const day of daysOf(source, filter))
    for (const sum of await sumsOfDay(source, day))
      if (wanted.every(([name, value]) => sum[name] === value)) summer.add(sum);
  return summer.sums();
}

async function sumsOfDay(source: Source, day: string): Promise<readonly SumBy<Dimension>[]> {
  const bytes = bytesOf(source, day);
  const file = source.files.besideOf(`${day}.sums`);
  const isClosed = day <= source.days.lastDay();
  if (isClosed && existsSync(file)) return parseSums(readFileSync(file, "utf8"));
  return (await source.openDays.upTo(day, bytes)).sums();
}
