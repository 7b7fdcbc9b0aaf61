// Usage records in files: `usage/YYYY-MM.jsonl`, one line a record, and `usage/cursor.json`, which says how far the spend
// log has been copied and how much of each month's file counts. Only replacing that one file makes new lines count, so a
// sync that dies half-way leaves a tail that the next one writes over.

import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { readLines, replaceFile } from "./files.ts";
import type { UsageRecord } from "./records.ts";
import type { UsageStore } from "./store.ts";

interface Cursor {
  /** Segment to bytes copied. */
  segments: Record<string, number>;
  /** Month to bytes that count. */
  months: Record<string, number>;
}

/** `dir` is made when the first record comes. */
export function createFileStore(dir: string): UsageStore {
  const file = join(dir, "cursor.json");

  function parse(line: string, month: string): UsageRecord {
    try {
      return JSON.parse(line) as UsageRecord;
    } catch {
      throw new Error(`${join(dir, `${month}.jsonl`)} holds a line that is no usage record: ${line.slice(0, 80)}`);
    }
  }

  /** Read anew each time: another process may be the one that syncs. */
  function read(): Cursor {
    try {
      return JSON.parse(readFileSync(file, "utf8")) as Cursor;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { segments: {}, months: {} };
      throw new Error(`cannot read ${file}: ${(error as Error).message}`);
    }
  }

  /** Appends to a month's file; returns its new size. */
  function append(month: string, size: number, text: string): number {
    const fd = openSync(join(dir, `${month}.jsonl`), size === 0 ? "w" : "r+", 0o600);
    try {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, size + at);
      ftruncateSync(fd, size + bytes.length);
      fsyncSync(fd);
      return size + bytes.length;
    } finally {
      closeSync(fd);
    }
  }

  return {
    cursor: async () => new Map(Object.entries(read().segments)),
    async commit(records, moved) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const { segments, months } = read();
      const texts = new Map<string, string>();
      for (const record of records) {
        const month = record.ended_at.slice(0, 7);
        texts.set(month, `${texts.get(month) ?? ""}${JSON.stringify(record)}\n`);
      }
      for (const [month, text] of texts) months[month] = append(month, months[month] ?? 0, text);
      replaceFile(file, JSON.stringify({ segments: { ...segments, ...Object.fromEntries(moved) }, months }));
    },
    async forget(gone) {
      const { segments, months } = read();
      for (const segment of gone) delete segments[segment];
      replaceFile(file, JSON.stringify({ segments, months }));
    },
    async *records({ account, month, requestId }) {
      const { months } = read();
      for (const [each, size] of Object.entries(months).sort()) {
        if (month !== undefined && month !== each) continue;
        const word = requestId === undefined ? "" : JSON.stringify(requestId); // most lines need not be parsed to be passed over
        for await (const { lines } of readLines(join(dir, `${each}.jsonl`), 0, size)) {
          const records = lines.filter((line) => line.includes(word)).map((line) => parse(line, each));
          yield records.filter((record) => (account ?? record.account) === record.account && (requestId ?? record.gateway_request_id) === record.gateway_request_id);
        }
      }
    },
    close: async () => undefined,
  };
}
