// Closes days. A day closes when it is over and every request that began on it is settled and
// copied. Its records are sorted into the order of the log, and its line is added to days.jsonl.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import {
  costsByCurrency,
  createSummer,
  dayAfter,
  dayOf,
  DIMENSIONS,
  isoTime,
  type UsageLine,
  type Dimension,
  type LogCursor,
  type SumBy,
} from "../records/index.ts";
import type { BooksFiles } from "./books-files.ts";
import {
  createCoverage,
  createMerkleRoot,
  leafOf,
  readLines,
  type ClosedDay,
  type DayRecords,
  type DaySegment,
} from "../days/index.ts";

/** How long after midnight a day is over: a line is written slightly later than its own time. */
const WRITTEN_MS = 10_000;

/**
 * Closes all days that can be closed. The caller holds the lock of the books, has checked that the
 * clock is steady, and has copied the log to `cursor`: at least all that was written by `began`.
 */
export async function closeDays(
  books: BooksFiles,
  cursor: LogCursor,
  began: number,
): Promise<void> {
  const { days, diagnose, store } = books;
  const today = dayOf(began - WRITTEN_MS);
  const last = days.lastDay();
  let day = last === "" ? await firstDay(books, cursor) : dayAfter(last);
  for (; day < today && !hasUnsettled(books, day); day = dayAfter(day)) {
    await store.finish(day);
    const text = await lineOf(books, cursor, day);
    await days.append(text);
    // The line is in the event, so an operator who keeps the logs elsewhere can prove the books.
    diagnose({ event: "day_closed", level: "info", day, line: text });
  }
}

/** The first day of the books. If they are empty: a day that is never over. */
async function firstDay({ store }: BooksFiles, cursor: LogCursor): Promise<string> {
  const segments = Object.keys(cursor).map((name) => name.slice(0, 10));
  return [...(await store.days()), ...segments].sort()[0] ?? "9999-12-31";
}

/** Whether a request that began on `day` or before is unsettled. */
const hasUnsettled = ({ openSegments }: BooksFiles, day: string): boolean =>
  [...openSegments.values()]
    .flatMap((reader) => reader.unsettled())
    .some(({ time }) => time.slice(0, 10) <= day);

/**
 * Makes the line of a day whose records are sorted. `day` absent: a head, which is printed and not
 * stored, and covers the records of all open days.
 */
export async function lineOf(books: BooksFiles, cursor: LogCursor, day?: string): Promise<string> {
  const { clock, days, signer, store } = books;
  // A head is known by its time, which is on its day, even if the day ends while it is made.
  const madeAt = isoTime(clock.now());
  const last = days.all().at(-1);
  const segments = await segmentsSince(books, cursor);
  const isOpen = (each: string): boolean => each > days.lastDay();
  const covered = day === undefined ? (await store.days()).filter(isOpen) : [day];
  const adder = createRecordAdder();
  for (const each of covered) for await (const batch of store.linesOf(each)) adder.add(batch);
  const closed: ClosedDay = {
    day: day ?? madeAt.slice(0, 10),
    number: (last?.closed.number ?? 0) + 1,
    previous: last ? sha256(last.text) : null,
    segments,
    ...adder.result(),
    made_at: madeAt,
  };
  const text = JSON.stringify(signer ? { ...closed, public_key: signer.publicHex } : closed);
  return signer ? signer.sign(text) : text;
}

/** The segments with more copied bytes than the lines of closed days cover. */
async function segmentsSince(
  { spendDir, days }: BooksFiles,
  cursor: LogCursor,
): Promise<readonly DaySegment[]> {
  const coverage = createCoverage(days.all().map(({ closed }) => closed));
  const segments: DaySegment[] = [];
  for (const segment of Object.keys(cursor).sort()) {
    const { first, bytes, lines } = cursor[segment]!;
    // A cut segment has fewer bytes than are covered.
    if (bytes <= (coverage.of(segment).at(-1)?.bytes ?? 0)) continue;
    const hash = createHash("sha256");
    for await (const batch of readLines(join(spendDir, segment), { to: bytes }))
      hash.update(batch.bytes);
    segments.push({ segment, first, bytes, lines, sha256: hash.digest("hex") });
  }
  return segments;
}

/** Adds up the records of a day, batch by batch. */
export interface RecordAdder {
  /** Adds lines. `bytes` as in UsageBatch. */
  add(batch: { readonly lines: readonly UsageLine[]; readonly bytes?: Buffer }): void;
  /** What the line of the day states about the records added so far. */
  result(): DayRecords;
  /** The sums of the records by all dimensions. */
  sums(): readonly SumBy<Dimension>[];
}

export function createRecordAdder(): RecordAdder {
  const hash = createHash("sha256");
  const merkle = createMerkleRoot();
  const summer = createSummer(DIMENSIONS);
  let records = 0;
  let size = 0;
  return {
    add({ lines, bytes = Buffer.from(lines.map(({ text }) => `${text}\n`).join("")) }) {
      records += lines.length;
      size += bytes.length;
      hash.update(bytes);
      for (const { text, record } of lines) {
        merkle.add(leafOf(text));
        if (record) summer.addRecord(record);
      }
    },
    result: () => ({
      records,
      cost: costsByCurrency(summer.sums()),
      file_bytes: size,
      file_sha256: hash.copy().digest("hex"),
      root: merkle.root(),
    }),
    sums: summer.sums,
  };
}

/** Describes for the operator how records differ from a line of days.jsonl. Empty: not at all. */
export function differencesFrom(line: ClosedDay, found: DayRecords): readonly string[] {
  return (Object.keys(found) as (keyof DayRecords)[]).flatMap((member) => {
    const [is, was] = [JSON.stringify(found[member]), JSON.stringify(line[member])];
    if (is === was) return [];
    return [member === "file_sha256" || member === "root" ? member : `${member} ${is}, not ${was}`];
  });
}
