// The usage store in files, one a month. Records are found by reading the lines.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type {
  Mark,
  RecordKey,
  RequestQuery,
  StoreFault,
  UsageChange,
  UsageFilter,
  UsageRecord,
  UsageStore,
} from "../../usage-records/index.ts";
import { fail } from "../../../core/schema/checker.ts";
import { asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { BooksFault } from "../books-fault.ts";
import { readLines } from "../read-lines.ts";
import { createRequestIndex } from "../request-index/request-index.ts";
import { parseUsageLine, usageIdIn, withAllCounts } from "../usage/usage-record.ts";
import type { Cursor } from "./cursor.ts";
import { createMonthFiles, type MonthFiles } from "./month-files.ts";
import { createMonthSums } from "./month-sums.ts";
import { rebuildMonths } from "./rebuild-months.ts";
import { replaceRecords } from "./rewrite-months.ts";

/** How many records are handed over at once. */
const BATCH = 1_000;
/** How much of a file is read at once for them: many may be reading at the same time. */
const BATCH_BYTES = 128 * 1024;

/** The store in the folder `dir`, which is made when the first record comes. */
export function createFileStore(dir: string): UsageStore {
  const files = createMonthFiles(dir);
  const index = createRequestIndex(join(dir, "index"), files);
  const parse = (line: string, month: string): UsageRecord =>
    withAllCounts(asObject(parseJson(line) ?? failUnreadableLine(files, month, line)));

  /** Throws a BooksFault if records that count are missing. */
  function readCursor(): Cursor {
    const [fault] = files.faults();
    if (fault) throw new BooksFault(fault.detail);
    return files.readCursor();
  }

  return {
    marks: async () => files.readCursor().marks,
    inspect: async () => files.faults(),
    async holds(records) {
      const found = new Set<string>();
      const cursor = readCursor();
      for (const [month, ids] of idsByMonth(records)) {
        const to = cursor.months.get(month) ?? 0;
        for await (const { lines } of readLines(files.pathOf(month, cursor), { to })) {
          for (const id of lines.map(usageIdIn)) if (ids.has(id)) found.add(id);
        }
      }
      return found;
    },
    async commit(change) {
      const marks = (old: readonly Mark[]) => marksAfter(old, change);
      if (change.corrections.size === 0) return files.append(textsByMonth(change.records), marks);
      readCursor();
      return replaceRecords(files, change, marks);
    },
    rebuild(readSettled, marks) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      return rebuildMonths(files, readSettled, marks);
    },
    maintain: () => index.update().then(() => [], notIndexed),
    async find(query) {
      const lines = await index.linesOf(query, readCursor);
      const records = lines.map(parseUsageLine).filter((record) => isOf(record, query));
      return records.slice(0, query.limit).reverse();
    },
    async *records(filter) {
      const cursor = filter.onUnreadable ? files.readCursor() : readCursor();
      yield* readRecords({ files, cursor, parse }, filter);
    },
    sums: createMonthSums({ files, readCursor, parse }),
    close: async () => undefined,
  };
}

/** Different request ids and accounts may have the same hashes. */
const isOf = (
  record: UsageRecord | undefined,
  { requestId, account }: RequestQuery,
): record is UsageRecord =>
  record?.gateway_request_id === requestId && record.account === (account ?? record.account);

const notIndexed = (error: unknown): readonly StoreFault[] => [
  {
    event: "usage_index_not_written",
    detail: `the index of the usage records cannot be written: ${(error as Error).message}`,
    blocks: false,
  },
];

function failUnreadableLine(files: MonthFiles, month: string, line: string): never {
  const path = files.pathOf(month, files.readCursor());
  return fail(
    "invalid_value",
    `${path} holds a line that is no usage record: ${line.slice(0, 80)}`,
  );
}

/** What is read. */
interface Source {
  readonly files: MonthFiles;
  readonly cursor: Cursor;
  /** Throws if a line is no record. */
  readonly parse: (line: string, month: string) => UsageRecord;
}

/** UsageStore.records() of the file store. */
async function* readRecords(
  source: Source,
  filter: UsageFilter,
): AsyncGenerator<readonly UsageRecord[]> {
  const { onUnreadable } = filter;
  let toSkip = filter.skip ?? 0;
  let found: UsageRecord[] = [];
  for await (const { month, lines } of matchingLines(source, filter)) {
    for (const line of lines.slice(toSkip)) {
      const record = onUnreadable ? parseUsageLine(line) : source.parse(line, month);
      // Only find() yields them. The record was made of the line just now, so nobody else has it.
      delete (record as { details?: unknown } | undefined)?.details;
      if (record) found.push(record);
      else onUnreadable?.(`${month}.jsonl: ${JSON.stringify(line.slice(0, 80))}`);
    }
    toSkip = Math.max(0, toSkip - lines.length);
    if (found.length < BATCH) continue;
    yield found;
    found = [];
  }
  if (found.length > 0) yield found;
}

/** Some lines of a month that match. */
interface MonthLines {
  readonly month: string;
  readonly lines: readonly string[];
}

async function* matchingLines(
  { files, cursor }: Source,
  filter: UsageFilter,
): AsyncGenerator<MonthLines> {
  const { cancel, month: onlyMonth, from = "", to = "9999-12-31" } = filter;
  const matches = lineMatcher(filter);
  const isWanted = (month: string): boolean =>
    month === (onlyMonth ?? month) && month >= from.slice(0, 7) && month <= to.slice(0, 7);
  const months = [...cursor.months].filter(([month]) => isWanted(month)).sort();
  for (const [month, size] of months) {
    const path = files.pathOf(month, cursor);
    if (filter.onUnreadable && !existsSync(path)) continue; // inspect() reports that.
    for await (const { lines } of readLines(path, { to: size, batchBytes: BATCH_BYTES })) {
      if (cancel?.aborted) throw cancel.reason;
      yield { month, lines: lines.filter(matches) };
    }
  }
}

/**
 * Whether a line matches a filter, without parsing the line: most lines are passed over. Inside a
 * text quotes are escaped, so the text of one column never matches another.
 */
function lineMatcher(filter: UsageFilter): (line: string) => boolean {
  const { account, model, keyId, provider, requestId, day, from, to } = filter;
  const columns = {
    account,
    model,
    key_id: keyId,
    // A record of which nobody served has no provider.
    provider: provider === "" ? null : provider,
    gateway_request_id: requestId,
  };
  const texts = Object.entries(columns)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
  if (day !== undefined) texts.push(`${ENDED_AT}${day}T`);
  const hasTexts = (line: string) => texts.every((text) => line.includes(text));
  if (from === undefined && to === undefined) return hasTexts;
  return (line) => isBetween(line, from ?? "", to ?? "9999-12-31") && hasTexts(line);
}

const ENDED_AT = '"ended_at":"';
const DAY_LENGTH = 10;

/** Whether the record of a line ended on these days or between them. */
function isBetween(line: string, from: string, to: string): boolean {
  const at = line.lastIndexOf(ENDED_AT) + ENDED_AT.length;
  const day = line.slice(at, at + DAY_LENGTH);
  return day >= from && day <= to;
}

/** The usage_ids of records, by the month in which they ended. */
function idsByMonth(records: readonly RecordKey[]): ReadonlyMap<string, ReadonlySet<string>> {
  const months = new Map<string, Set<string>>();
  for (const { usage_id, ended_at } of records) {
    const month = ended_at.slice(0, 7);
    const ids = months.get(month) ?? new Set();
    months.set(month, ids.add(usage_id));
  }
  return months;
}

/** The lines of records, by the month in which they ended. */
function textsByMonth(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string[]>();
  for (const record of records) {
    const month = record.ended_at.slice(0, 7);
    const lines = texts.get(month) ?? [];
    lines.push(`${JSON.stringify(record)}\n`);
    texts.set(month, lines);
  }
  return new Map([...texts].map(([month, lines]) => [month, lines.join("")]));
}

function marksAfter(old: readonly Mark[], { put, drop }: UsageChange): readonly Mark[] {
  const replaced = [...put, ...drop];
  const kept = old.filter((mark) => !replaced.some((other) => isSameMark(mark, other)));
  return [...kept, ...put];
}

const isSameMark = (a: Mark, b: Mark): boolean =>
  a.identity === b.identity &&
  a.position === b.position &&
  a.tail === b.tail &&
  (a.identity !== null || a.segment === b.segment);
