// Usage records in files (month-files.ts), read in one go, by line; what the months come to is remembered.
import { existsSync, mkdirSync } from "node:fs";
import { setImmediate as turnEnd } from "node:timers/promises";
import { fail } from "../../core/schema/checker.ts";
import { parseJson } from "../../core/schema/untrusted-json.ts";
import { rebuildMonths, replaceRecords } from "./file-rebuild.ts";
import { readLines } from "./files.ts";
import { BooksFault, createMonthFiles, type Cursor } from "./month-files.ts";
import { parseMoney } from "../../core/ledger/price.ts";
import {
  addTo,
  idIn,
  nothing,
  parseUsageLine,
  type Dimension,
  type SumBy,
  type UsageRecord,
} from "./records.ts";
import type { UsageChange, UsageFilter, UsageStore } from "./usage-store.ts";
import type { Mark } from "./segments.ts";

const [BATCH, BATCH_BYTES] = [1_000, 128 * 1024]; // records that are handed over at once, and of their files what is read at once: many may be reading
const CELLS_AT_ONCE = 5_000; // in one turn of the event loop: there may be one for each account, model and day
/** `dir` is made when the first record comes. */
export function createFileStore(dir: string): UsageStore {
  const files = createMonthFiles(dir);

  const months = new Map<
    string,
    { cells: Map<string, Cell>; end: number; version: number; reading: Promise<void> }
  >();

  const parse = (line: string, month: string) =>
    (parseJson(line) ??
      fail(
        "invalid_value",
        `${files.pathOf(month, files.readCursor())} holds a line that is no usage record: ${line.slice(0, 80)}`,
      )) as UsageRecord;

  /** A sum of less than what counts would be a wrong bill. */
  function checked(): Cursor {
    const [fault] = files.faults();
    if (fault) throw new BooksFault(fault.detail);
    return files.readCursor();
  }

  /** What the records of a month come to in the finest cells: those that have come since it was last asked for are read, and added. */
  async function cellsOf(month: string): Promise<Iterable<Cell>> {
    const known = months.get(month) ?? {
      cells: new Map(),
      end: 0,
      version: 0,
      reading: Promise.resolve(),
    };
    months.set(month, known);
    const versionNow = () => files.readCursor().rewritten.get(month) ?? 0;
    const read = async () => {
      const cursor = checked();
      const size = cursor.months.get(month) ?? 0;
      const version = cursor.rewritten.get(month) ?? 0;
      // Somebody has taken it away, or written it anew.
      if (size < known.end || version !== known.version)
        Object.assign(known, { cells: new Map(), end: 0, version });
      for await (const { lines, end } of readLines(files.pathOf(month, cursor), known.end, size)) {
        for (const record of lines.map((line) => parse(line, month)))
          addToCell(known.cells, cellOf(record), CELL);
        known.end = end;
      }
      // It was written anew meanwhile: what has been read may be half of either.
      if (versionNow() !== version) await read();
    };
    known.reading = known.reading.catch(() => undefined).then(read);
    await known.reading;
    return known.cells.values();
  }

  return {
    marks: async () => files.readCursor().marks,
    inspect: async () => files.faults(),
    async holds(records) {
      const wanted = new Map<string, Set<string>>();
      for (const { usage_id, ended_at } of records) {
        const month = ended_at.slice(0, 7);
        wanted.set(month, (wanted.get(month) ?? new Set()).add(usage_id));
      }
      const found = new Set<string>();
      const cursor = checked();
      for (const [month, ids] of wanted) {
        const size = cursor.months.get(month) ?? 0;
        for await (const { lines } of readLines(files.pathOf(month, cursor), 0, size)) {
          for (const id of lines.map(idIn).filter((id) => ids.has(id))) found.add(id);
        }
      }
      return found;
    },
    async commit(change) {
      const marks = (old: Cursor) => marksAfter(old.marks, change);
      if (change.corrections.size === 0) return files.append(textsOf(change.records), marks);
      checked();
      return replaceRecords(files, change, marks);
    },
    rebuild(settled, marks) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      return rebuildMonths(files, settled, marks);
    },
    async *records({
      month: wanted,
      skip = 0,
      account,
      model,
      requestId: gateway_request_id,
      day,
      cancel,
      unreadable,
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
      const cursor = unreadable ? files.readCursor() : checked();
      for (const [month, size] of [...cursor.months]
        .filter(([month]) => month === (wanted ?? month))
        .sort()) {
        const path = files.pathOf(month, cursor);
        if (unreadable && !existsSync(path)) continue; // that is told by inspect()
        for await (const { lines } of readLines(path, 0, size, BATCH_BYTES)) {
          if (cancel?.aborted) throw cancel.reason;
          const fit = lines.filter((line) => words.every((word) => line.includes(word)));
          const taken = fit.slice(Math.max(0, skip - passed));
          for (const line of taken) {
            const record = unreadable ? parseUsageLine(line) : parse(line, month);
            if (record) found.push(record);
            else unreadable?.(`${month}.jsonl: ${JSON.stringify(line.slice(0, 80))}`);
          }
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
        seen += 1;
        if (seen % CELLS_AT_ONCE === 0) await turnEnd();
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

/** The records as lines, by the month in which they ended. */
function textsOf(records: readonly UsageRecord[]): ReadonlyMap<string, string> {
  const texts = new Map<string, string[]>();
  for (const record of records) {
    const month = record.ended_at.slice(0, 7);
    const lines = texts.get(month) ?? [];
    lines.push(`${JSON.stringify(record)}\n`);
    texts.set(month, lines);
  }
  return new Map([...texts].map(([month, lines]) => [month, lines.join("")]));
}

const isSameMark = (a: Mark, b: Mark): boolean =>
  a.identity === b.identity &&
  a.position === b.position &&
  a.tail === b.tail &&
  (a.identity !== null || a.segment === b.segment);

function marksAfter(old: readonly Mark[], { put, drop }: UsageChange): readonly Mark[] {
  const replaced = [...put, ...drop];
  return [...old.filter((mark) => !replaced.some((each) => isSameMark(each, mark))), ...put];
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
