// The usage store in files, one a day. Sums and the index of a closed day are made when it closes;
// those of an open day are held in memory and grow with its file.
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdir, open, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { replaceFile } from "../../../data-files/index.ts";
import {
  createSummer,
  DIMENSIONS,
  parseSums,
  parseUsageLine,
  sumOfRecord,
  sumsText,
  type DayLine,
  type Dimension,
  type ReadDay,
  type ReadFilter,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../../records/index.ts";
import type { Days } from "../days.ts";
import { createDayFiles } from "./day-files.ts";
import { bytesOf, daysOf, orderedTexts, textsOf, type Source } from "./day-texts.ts";
import { find } from "./find.ts";
import { lineMatcher } from "./lines.ts";
import { createOpenDays } from "./open-days.ts";
import { entryOf, mergeIntoMonth, sorted } from "./request-ids.ts";

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

async function* linesOf(source: Source, day: string): AsyncGenerator<readonly DayLine[]> {
  for await (const texts of orderedTexts(source, day))
    yield texts.map((text) => ({ text, record: parseUsageLine(text) }));
}

async function finish(source: Source, day: string): Promise<void> {
  if (bytesOf(source, day) === 0) return;
  const { files } = source;
  const draft = `${files.pathOf(day)}.new`;
  await writeTexts(draft, orderedTexts(source, day));
  await files.replace(day, draft);
  const summer = createSummer(DIMENSIONS);
  const entries: Buffer[] = [];
  let offset = 0;
  for await (const texts of textsOf(source, day)) {
    for (const text of texts) {
      const record = recordIn(source, day, text);
      summer.add(sumOfRecord(record));
      entries.push(entryOf(record.gateway_request_id, record.account, { day, offset }));
      offset += Buffer.byteLength(text) + 1;
    }
  }
  await mergeIntoMonth(files.besideOf(`${day.slice(0, 7)}.ids`), day, await sorted(entries));
  await replaceFile(files.besideOf(`${day}.sums`), sumsText(summer.sums()));
}

async function writeTexts(path: string, batches: AsyncIterable<readonly string[]>): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, "", { mode: 0o600 });
  const file = await open(path, "a");
  try {
    for await (const texts of batches)
      if (texts.length > 0) await file.appendFile(texts.map((text) => `${text}\n`).join(""));
    await file.sync();
  } finally {
    await file.close();
  }
}

async function replaceDay(source: Source, day: string, read: ReadDay): Promise<void> {
  const draft = `${source.files.pathOf(day)}.new`;
  async function* texts(): AsyncGenerator<readonly string[]> {
    for await (const records of read()) yield records.map((record) => JSON.stringify(record));
  }
  await writeTexts(draft, texts());
  const closed = source.days.all().find((line) => line.closed.day === day)?.closed;
  const { size } = statSync(draft);
  if (closed && closed.file_bytes !== size)
    throw new Error(`${day} was closed with ${closed.file_bytes} bytes of records, not ${size}`);
  await source.files.replace(day, draft);
  await finish(source, day);
}

function recordIn({ files }: Source, day: string, text: string): UsageRecord {
  const record = parseUsageLine(text);
  if (record) return record;
  throw new Error(
    `${files.pathOf(day)} holds a line that is no usage record: ${text.slice(0, 80)}`,
  );
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
  const isClosed = day <= (source.days.last()?.closed.day ?? "");
  if (isClosed && existsSync(file)) return parseSums(readFileSync(file, "utf8"));
  return (await source.openDays.upTo(day, bytes)).sums();
}
