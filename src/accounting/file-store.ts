// Usage records in files: `usage/YYYY-MM.jsonl`, one line a record, and `usage/cursor.json`: how far the spend log has been copied, and
// how much of each file counts. Only replacing this makes new lines count: what a sync that dies has appended the next one cuts off.
import { mkdirSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fail } from "../protocol/checker.ts";
import { parseJson } from "../protocol/foreign.ts";
import { readJson, readLines, replaceFile } from "./files.ts";
import type { UsageRecord, UsageStore } from "./records.ts";

const BATCH = 1_000; // records that are read at once
/** `dir` is made when the first record comes. */
export function createFileStore(dir: string): UsageStore {
  const cursorFile = join(dir, "cursor.json");
  const monthFile = (month: string) => join(dir, `${month}.jsonl`);

  /** Segment to bytes copied, and month to bytes that count. Read anew each time: another process may be the one that syncs. */
  const readCursor = () => readJson(cursorFile, { segments: {}, months: {} }, ["ENOENT"]) as Record<"segments" | "months", Record<string, number>>;
  const parse = (line: string, month: string) =>
    (parseJson(line) ?? fail("invalid_value", `${monthFile(month)} holds a line that is no usage record: ${line.slice(0, 80)}`)) as UsageRecord;

  return {
    cursor: async () => new Map(Object.entries(readCursor().segments)),
    async commit(records, moved, gone) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const { segments, months } = readCursor();
      for (const month of new Set(records.map(({ ended_at }) => ended_at.slice(0, 7)))) {
        const text = records.filter(({ ended_at }) => ended_at.startsWith(month)).map((record) => `${JSON.stringify(record)}\n`).join("");
        const size = months[month] ?? 0;
        if (size > 0) await truncate(monthFile(month), size);
        await writeFile(monthFile(month), text, { flag: size > 0 ? "a" : "w", mode: 0o600, flush: true });
        months[month] = size + Buffer.byteLength(text);
      }
      Object.assign(segments, Object.fromEntries(moved));
      for (const segment of gone) delete segments[segment];
      await replaceFile(cursorFile, JSON.stringify({ segments, months }));
    },
    async *records({ account, month: wanted, requestId }) {
      const word = requestId === undefined ? "" : JSON.stringify(requestId); // most lines need not be parsed to be passed over
      const fits = ({ account: owner, gateway_request_id: id }: UsageRecord) => (account ?? owner) === owner && (requestId ?? id) === id;
      const found: UsageRecord[] = [];
      for (const [month, size] of Object.entries(readCursor().months).filter(([month]) => month === (wanted ?? month)).sort()) {
        for await (const { lines } of readLines(monthFile(month), 0, size)) {
          found.push(...lines.filter((line) => line.includes(word)).map((line) => parse(line, month)).filter(fits));
          if (found.length >= BATCH) yield found.splice(0);
        }
      }
      if (found.length > 0) yield found;
    },
    close: async () => undefined,
  };
}
