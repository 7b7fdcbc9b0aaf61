// Finds records by their request id: in the open days, then in the indexes of closed days.
import { existsSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { inodeOf } from "../../data-files/index.ts";
import { parseUsageLine, type RequestQuery, type UsageRecord } from "../records/index.ts";
import { findInMonth } from "./request-ids.ts";
import { bytesOf, compareTexts, daysOf, type Source } from "./source.ts";

const LINE_BYTES = 4 * 1024;

export async function find(source: Source, query: RequestQuery): Promise<readonly UsageRecord[]> {
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
  const last = source.days.lastDay();
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
    const index = source.files.besideOf(`${month}.ids`);
    if (!existsSync(index))
      throw new Error(`${index} is not there, the index of closed days: run 'books rebuild'`);
    const places = findInMonth(index, query);
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
