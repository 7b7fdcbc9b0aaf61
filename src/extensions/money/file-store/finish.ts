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
  /** The number of its first line. */
  readonly line: number;
}

/** Some lines of the file of a day. */
export interface FileLines {
  /** Without their line ends. `line`: the first line of the file has 1. */
  readonly lines: readonly { readonly text: string; readonly line: number }[];
  /** The same as they stand there. */
  readonly bytes: Buffer;
}

/** The first bytes of the file of a day, in its order. Each pass leaves a run of each segment. */
async function runsOf(path: string, to: number): Promise<readonly Run[]> {
  const runs: Run[] = [];
  let from = 0;
  let line = 1;
  for await (const { lines, bytes } of readLines(path, { to, batchBytes: BATCH_BYTES })) {
    let at = 0;
    for (const text of lines) {
      const segment = segmentIn(text);
      const next = bytes.indexOf("\n", at) + 1;
      const last = runs.at(-1);
      if (last?.segment === segment) last.to += next - at;
      else runs.push({ segment, from: from + at, to: from + next, line });
      at = next;
      line += 1;
    }
    from += at;
  }
  return runs;
}

/**
 * The lines in the first bytes of the file of a day, in the order of the log: within a segment the
 * file has it already.
 */
export async function* orderedLines(path: string, to: number): AsyncGenerator<FileLines> {
  const runs = await runsOf(path, to);
  const ordered = [...runs].sort((one, other) => compareTexts(one.segment, other.segment));
  for (const run of ordered) {
    let { line } = run;
    const options = { from: run.from, to: run.to, batchBytes: BATCH_BYTES };
    for await (const { lines, bytes } of readLines(path, options)) {
      const first = line;
      line += lines.length;
      yield { lines: lines.map((text, index) => ({ text, line: first + index })), bytes };
    }
  }
}

export async function* linesOf(source: Source, day: string): AsyncGenerator<readonly DayLine[]> {
  for await (const { lines } of orderedLines(source.files.pathOf(day), bytesOf(source, day)))
    yield lines.map(({ text }) => ({ text, record: parseUsageLine(text) }));
}

export async function finish(source: Source, day: string): Promise<void> {
  if (bytesOf(source, day) === 0) return;
  const { files } = source;
  const draft = `${files.pathOf(day)}.new`;
  await writeAll(draft, orderedBytes(source, day));
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

async function* orderedBytes(source: Source, day: string): AsyncGenerator<Buffer> {
  for await (const { bytes } of orderedLines(source.files.pathOf(day), bytesOf(source, day)))
    yield bytes;
}

async function writeAll(path: string, batches: AsyncIterable<string | Buffer>): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, "", { mode: 0o600 });
  const file = await open(path, "a");
  try {
    for await (const batch of batches) if (batch.length > 0) await file.appendFile(batch);
    await file.sync();
  } finally {
    await file.close();
  }
}

export async function replaceDay(source: Source, day: string, read: ReadDay): Promise<void> {
  const draft = `${source.files.pathOf(day)}.new`;
  async function* texts(): AsyncGenerator<string> {
    for await (const records of read())
      yield records.map((record) => `${JSON.stringify(record)}\n`).join("");
  }
  await writeAll(draft, texts());
  const closed = source.days.of(day)?.closed;
  const { size } = statSync(draft);
  if (closed && closed.file_bytes !== size)
    throw new Error(`${day} was closed with ${closed.file_bytes} bytes of records, not ${size}`);
  await source.files.replace(day, draft);
  await finish(source, day);
}
