// The usage store in files, one a day. Sums and the index of a closed day are made when it closes;
// those of an open day are held in memory and grow with its file.
import { existsSync, readFileSync, statSync } from "node:fs";
import { open, writeFile, type FileHandle } from "node:fs/promises";
import { inodeOf, replaceFile } from "../../../data-files/index.ts";
import {
  createSummer,
  DIMENSIONS,
  parseSums,
  parseUsageLine,
  sumOfRecord,
  sumsText,
  type DayFilter,
  type DayLine,
  type Dimension,
  type ReadDay,
  type ReadFilter,
  type RequestQuery,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "../../records/index.ts";
import { brokenFile } from "../broken-file.ts";
import type { Days } from "../days.ts";
import { readLines } from "../read-lines.ts";
import { createDayFiles, type DayFiles } from "./day-files.ts";
import { lineMatcher, segmentIn } from "./lines.ts";
import { createOpenDays, type OpenDays } from "./open-days.ts";
import { entryOf, findInMonth, mergeIntoMonth, sorted } from "./request-ids.ts";

/** So many bytes are read at once. */
const BATCH_BYTES = 256 * 1024;
const LINE_BYTES = 4 * 1024;

/** What the parts of the store share. */
interface Source {
  readonly files: DayFiles;
  readonly days: Days;
  readonly openDays: OpenDays;
}

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

/** The days with records that a filter means, in their order. */
function daysOf({ files, days }: Source, filter: DayFilter): string[] {
  const { month = "", day, from = "", to = "9999-12-31" } = filter;
  const closed = days.all().filter((line) => line.closed.records > 0);
  const all = new Set([
    ...closed.map((line) => line.closed.day),
    ...Object.keys(files.read().days),
  ]);
  const isMeant = (name: string): boolean =>
    name.startsWith(month) && name === (day ?? name) && name >= from && name <= to;
  return [...all].filter(isMeant).sort();
}

/** How many bytes of the file of a day count. Throws if it has less. */
function bytesOf({ files, days }: Source, day: string): number {
  const closed = days.all().find((line) => line.closed.day === day);
  const bytes = closed?.closed.file_bytes ?? files.read().days[day] ?? 0;
  const path = files.pathOf(day);
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? -1;
  if (bytes > 0 && size < bytes) throw new Error(brokenFile(path, size, bytes));
  return bytes;
}

/** The texts of the lines of a day as its file has them, in batches. */
async function* textsOf(source: Source, day: string): AsyncGenerator<readonly string[]> {
  const to = bytesOf(source, day);
  const path = source.files.pathOf(day);
  for await (const { lines } of readLines(path, { to, batchBytes: BATCH_BYTES })) yield lines;
}

/** Some bytes of the file of a day, whose records come from one segment. */
interface Run {
  readonly segment: string;
  readonly from: number;
  to: number;
}

/** All of the file of a day, in its order. Each pass leaves a run of each segment. */
async function runsOf(source: Source, day: string): Promise<readonly Run[]> {
  const runs: Run[] = [];
  let from = 0;
  for await (const texts of textsOf(source, day))
    for (const text of texts) {
      const segment = segmentIn(text);
      const to = from + Buffer.byteLength(text) + 1;
      const last = runs.at(-1);
      if (last?.segment === segment) last.to = to;
      else runs.push({ segment, from, to });
      from = to;
    }
  return runs;
}

/** The same in the order of the log: within a segment the file has it already. */
async function* orderedTexts(source: Source, day: string): AsyncGenerator<readonly string[]> {
  const path = source.files.pathOf(day);
  const runs = await runsOf(source, day);
  const ordered = [...runs].sort((one, other) => compareTexts(one.segment, other.segment));
  for (const { from, to } of ordered)
    for await (const { lines } of readLines(path, { from, to, batchBytes: BATCH_BYTES }))
      yield lines;
}

/** By UTF-16 code units, as the names in a folder are sorted. */
function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
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

async function find(source: Source, query: RequestQuery): Promise<readonly UsageRecord[]> {
  for (;;) {
    const found = await search(source, query);
    if (found) return found.reverse().sort(byEnd).slice(-query.limit);
  }
}

/**
 * Looks at days from the last one, until there are enough. Resolves with undefined if a day was put
 * in the order of the log meanwhile, so that its lines begin elsewhere.
 */
async function search(source: Source, query: RequestQuery): Promise<UsageRecord[] | undefined> {
  const last = source.days.last()?.closed.day ?? "";
  const found: UsageRecord[] = [];
  const openOnes = daysOf(source, {}).filter((day) => day > last);
  for (const day of openOnes.reverse()) {
    const { offsetsOf, path, inode } = await source.openDays.upTo(day, bytesOf(source, day));
    await readAt(path, offsetsOf(query), query, found);
    if (inodeOf(path) !== inode) return undefined;
  }
  const months = new Set(daysOf(source, { to: last }).map((day) => day.slice(0, 7)));
  for (const month of [...months].reverse()) {
    if (found.length >= query.limit) break;
    const places = findInMonth(source.files.besideOf(`${month}.ids`), query);
    for (const day of [...new Set(places.map((place) => place.day))].sort().reverse()) {
      const offsets = places.filter((place) => place.day === day).map(({ offset }) => offset);
      await readAt(source.files.pathOf(day), offsets, query, found);
    }
  }
  return found;
}

const byEnd = (one: UsageRecord, other: UsageRecord): number =>
  compareTexts(one.ended_at, other.ended_at) || compareTexts(one.usage_id, other.usage_id);

/** Adds the records of a query whose lines begin at these bytes, the latest first, to `found`. */
async function readAt(
  path: string,
  offsets: readonly number[],
  { requestId, account, limit }: RequestQuery,
  found: UsageRecord[],
): Promise<void> {
  if (offsets.length === 0) return;
  const file = await open(path);
  try {
    for (const offset of [...offsets].sort((one, other) => other - one)) {
      if (found.length >= limit) return;
      const record = parseUsageLine(await lineAt(file, offset));
      // Different ids may have the same hash.
      if (
        record?.gateway_request_id === requestId &&
        record.account === (account ?? record.account)
      )
        found.push(record);
    }
  } finally {
    await file.close();
  }
}

async function lineAt(file: FileHandle, offset: number): Promise<string> {
  for (let length = LINE_BYTES; ; length *= 4) {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    const end = buffer.indexOf("\n");
    if (end >= 0 || bytesRead < length) return buffer.toString("utf8", 0, Math.max(0, end));
  }
}
