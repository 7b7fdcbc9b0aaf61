// A day that is over: its records in the order of the log, their sums, and their index.
import { mkdirSync, statSync } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { replaceFile } from "../../data-files/index.ts";
import { readLines } from "../days/index.ts";
import {
  createSummer,
  DIMENSIONS,
  parseUsageLine,
  sumOfRecord,
  sumsText,
  type DayLine,
  type ReadDay,
} from "../records/index.ts";
import { segmentIn } from "./lines.ts";
import { entryOf, mergeIntoMonth, sorted } from "./request-ids.ts";
import { BATCH_BYTES, bytesOf, compareTexts, recordIn, textsOf, type Source } from "./source.ts";

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

export async function* linesOf(source: Source, day: string): AsyncGenerator<readonly DayLine[]> {
  for await (const texts of orderedTexts(source, day))
    yield texts.map((text) => ({ text, record: parseUsageLine(text) }));
}

export async function finish(source: Source, day: string): Promise<void> {
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
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
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

export async function replaceDay(source: Source, day: string, read: ReadDay): Promise<void> {
  const draft = `${source.files.pathOf(day)}.new`;
  async function* texts(): AsyncGenerator<readonly string[]> {
    for await (const records of read()) yield records.map((record) => JSON.stringify(record));
  }
  await writeTexts(draft, texts());
  const closed = source.days.of(day)?.closed;
  const { size } = statSync(draft);
  if (closed && closed.file_bytes !== size)
    throw new Error(`${day} was closed with ${closed.file_bytes} bytes of records, not ${size}`);
  await source.files.replace(day, draft);
  await finish(source, day);
}
