// Usage records in files: `usage/YYYY-MM.jsonl`, one line a record, and `usage/cursor.json`: how far the spend log has been copied, and
// how much of each file counts. Only replacing this makes new lines count: what a sync that dies has appended the next one cuts off.
import { mkdirSync } from "node:fs";
import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turnEnd } from "node:timers/promises";
import { fail } from "../protocol/checker.ts";
import { parseJson } from "../protocol/foreign.ts";
import { readJson, readLines, replaceFile } from "./files.ts";
import { parseMoney } from "./price.ts";
import {
  addTo,
  nothing,
  type Dimension,
  type SumBy,
  type UsageFilter,
  type UsageRecord,
  type UsageStore,
} from "./records.ts";

const [BATCH, BATCH_BYTES] = [1_000, 128 * 1024]; // records that are handed over at once, and of their files what is read at once: many may be reading
const CELLS_AT_ONCE = 5_000; // in one turn of the event loop: there may be one for each account, model and day
/** `dir` is made when the first record comes. */
export function createFileStore(dir: string): UsageStore {
  const cursorFile = join(dir, "cursor.json");
  const monthFile = (month: string) => join(dir, `${month}.jsonl`);

  const months = new Map<
    string,
    { cells: Map<string, Cell>; end: number; reading: Promise<void> }
  >();

  /** Segment to bytes copied, and month to bytes that count. Read anew each time: another process may be the one that syncs. */
  const readCursor = () =>
    readJson(cursorFile, { segments: {}, months: {} }, ["ENOENT"]) as Record<
      "segments" | "months",
      Record<string, number>
    >;
  const parse = (line: string, month: string) =>
    (parseJson(line) ??
      fail(
        "invalid_value",
        `${monthFile(month)} holds a line that is no usage record: ${line.slice(0, 80)}`,
      )) as UsageRecord;

  /** What the records of a month come to in the finest cells: those that have come since it was last asked for are read, and added. */
  async function cellsOf(month: string): Promise<Iterable<Cell>> {
    const known = months.get(month) ?? { cells: new Map(), end: 0, reading: Promise.resolve() };
    months.set(month, known);
    const read = async () => {
      const size = readCursor().months[month] ?? 0;
      if (size < known.end) Object.assign(known, { cells: new Map(), end: 0 }); // somebody has taken it away
      for await (const { lines, end } of readLines(monthFile(month), known.end, size)) {
        for (const record of lines.map((line) => parse(line, month)))
          addToCell(known.cells, cellOf(record), CELL);
        known.end = end;
      }
    };
    await (known.reading = known.reading.catch(() => undefined).then(read));
    return known.cells.values();
  }

  return {
    cursor: async () => new Map(Object.entries(readCursor().segments)),
    async commit(records, moved, gone) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const { segments, months } = readCursor();
      for (const month of new Set(records.map(({ ended_at }) => ended_at.slice(0, 7)))) {
        const text = records
          .filter(({ ended_at }) => ended_at.startsWith(month))
          .map((record) => `${JSON.stringify(record)}\n`)
          .join("");
        const size = months[month] ?? 0;
        if (size > 0) await truncate(monthFile(month), size);
        await writeFile(monthFile(month), text, {
          flag: size > 0 ? "a" : "w",
          mode: 0o600,
          flush: true,
        });
        months[month] = size + Buffer.byteLength(text);
      }
      Object.assign(segments, Object.fromEntries(moved));
      for (const segment of gone) delete segments[segment];
      await replaceFile(cursorFile, JSON.stringify({ segments, months }));
    },
    async *records({
      month: wanted,
      skip = 0,
      account,
      model,
      requestId: gateway_request_id,
      day,
      cancel,
    }) {
      // The words of a line that fits: most need not be parsed to be passed over. Inside a text quotes are escaped, so they fit no other.
      const equal = Object.entries({ account, model, gateway_request_id }).filter(
        ([, value]) => value !== undefined,
      );
      const words = [
        ...equal.map(([name, value]) => `"${name}":${JSON.stringify(value)}`),
        ...(day === undefined ? [] : [`"ended_at":"${day}T`]),
      ];
      let passed = 0;
      const found: UsageRecord[] = [];
      for (const [month, size] of Object.entries(readCursor().months)
        .filter(([month]) => month === (wanted ?? month))
        .sort()) {
        for await (const { lines } of readLines(monthFile(month), 0, size, BATCH_BYTES)) {
          if (cancel?.aborted) throw cancel.reason;
          const fit = lines.filter((line) => words.every((word) => line.includes(word)));
          found.push(...fit.slice(Math.max(0, skip - passed)).map((line) => parse(line, month)));
          passed += fit.length;
          if (found.length >= BATCH) yield found.splice(0);
        }
      }
      if (found.length > 0) yield found;
    },
    async sums<D extends Dimension>(
      { month, day, account, model }: UsageFilter & { readonly month: string },
      by: readonly D[],
    ) {
      const sums = new Map<string, SumBy<D>>();
      let seen = 0;
      for (const cell of await cellsOf(month)) {
        if ((seen += 1) % CELLS_AT_ONCE === 0) await turnEnd();
        if (
          (day ?? cell.day) === cell.day &&
          (account ?? cell.account) === cell.account &&
          (model ?? cell.model) === cell.model
        )
          addToCell(sums, cell, by);
      }
      return [...sums.values()];
    },
    close: async () => undefined,
  };
}

const CELL = ["day", "account", "model", "currency"] as const;
type Cell = SumBy<Dimension>;
/** Each field is named: of millions a copy of the whole record would take longer than all else. */
function cellOf(record: UsageRecord): Cell {
  const {
    ended_at,
    account,
    model,
    currency,
    cost,
    prompt_cache_hit_tokens,
    prompt_cache_miss_tokens,
    completion_tokens,
    reasoning_tokens,
  } = record;
  return {
    day: ended_at.slice(0, 10),
    account,
    model,
    currency,
    cost: parseMoney(cost),
    requests: 1,
    prompt_cache_hit_tokens,
    prompt_cache_miss_tokens,
    completion_tokens,
    reasoning_tokens,
  };
}
function addToCell<D extends Dimension>(
  cells: Map<string, SumBy<D>>,
  part: Cell,
  by: readonly D[],
): void {
  const key = by.map((name) => part[name]).join("\0");
  const cell =
    cells.get(key) ??
    ({ ...Object.fromEntries(by.map((name) => [name, part[name]])), ...nothing() } as SumBy<D>);
  cells.set(key, cell);
  addTo(cell, part);
}
