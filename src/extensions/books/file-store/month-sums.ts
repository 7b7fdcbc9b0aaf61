// What the records of the file store add up to, by day, account, model and currency. A month is
// read once; after that only the records that have come since are read and added.
import { setImmediate as turnEnd } from "node:timers/promises";
import { parseMoney } from "../../../core/ledger/price.ts";
import type { Dimension, MonthFilter, SumBy, UsageRecord } from "../../usage-records/index.ts";
import { readLines } from "../read-lines.ts";
import { addToSum, emptySum } from "../usage/sums.ts";
import type { Cursor } from "./cursor.ts";
import type { MonthFiles } from "./month-files.ts";

/**
 * How many sums are looked at in one turn of the event loop. There may be one for each account,
 * model and day.
 */
const CELLS_AT_ONCE = 5_000;

/** The finest sums: of the records that agree in all dimensions. */
const ALL = ["day", "account", "model", "currency"] as const satisfies readonly Dimension[];
type Cell = SumBy<Dimension>;

/** What is remembered of a month. */
interface Month {
  cells: Map<string, Cell>;
  /** How much of the file is in the cells, in bytes. */
  end: number;
  /** How often the month had been written anew. */
  version: number;
  /** Settles when nobody reads the month. One reading follows the other. */
  reading: Promise<void>;
}

/** Where the records are. */
export interface MonthSumsOptions {
  readonly files: MonthFiles;
  /**
   * Reads the cursor. Throws if records that count are missing, because the sum would be a wrong
   * bill.
   */
  readonly readCursor: () => Cursor;
  /** Parses a line of a month. Throws if it is no record. */
  readonly parse: (line: string, month: string) => UsageRecord;
}

/** UsageStore.sums() of the file store. */
export type SumMonth = <D extends Dimension>(
  filter: MonthFilter,
  by: readonly D[],
) => Promise<readonly SumBy<D>[]>;

/** Sums of months that are remembered. */
export function createMonthSums({ files, readCursor, parse }: MonthSumsOptions): SumMonth {
  const months = new Map<string, Month>();

  async function read(name: string, month: Month): Promise<void> {
    const cursor = readCursor();
    const size = cursor.months.get(name) ?? 0;
    const version = versionOf(name, cursor);
    // Somebody has deleted the month, or it was written anew.
    if (size < month.end || version !== month.version) {
      month.cells = new Map();
      month.end = 0;
      month.version = version;
    }
    const part = { from: month.end, to: size };
    for await (const { lines, end } of readLines(files.pathOf(name, cursor), part)) {
      for (const line of lines) addToCell(month.cells, cellOf(parse(line, name)), ALL);
      month.end = end;
    }
    // If it was written anew meanwhile, what was read may be half of either file.
    if (versionOf(name, files.readCursor()) !== version) await read(name, month);
  }

  async function cellsOf(name: string): Promise<Iterable<Cell>> {
    const month = months.get(name) ?? emptyMonth();
    months.set(name, month);
    month.reading = month.reading.catch(() => undefined).then(() => read(name, month));
    await month.reading;
    return month.cells.values();
  }

  return async ({ month, day, account, model }, by) => {
    const sums = new Map<string, SumBy<(typeof by)[number]>>();
    let seen = 0;
    for (const cell of await cellsOf(month)) {
      seen += 1;
      if (seen % CELLS_AT_ONCE === 0) await turnEnd();
      const isWanted =
        (day ?? cell.day) === cell.day &&
        (account ?? cell.account) === cell.account &&
        (model ?? cell.model) === cell.model;
      if (isWanted) addToCell(sums, cell, by);
    }
    return [...sums.values()];
  };
}

const emptyMonth = (): Month => ({
  cells: new Map(),
  end: 0,
  version: 0,
  reading: Promise.resolve(),
});

const versionOf = (month: string, { rewritten }: Cursor): number => rewritten.get(month) ?? 0;

/**
 * A record as a sum. Each field is named: of millions of records, copies would take longer than
 * everything else.
 */
function cellOf(record: UsageRecord): Cell {
  return {
    day: record.ended_at.slice(0, 10),
    account: record.account,
    model: record.model,
    currency: record.currency,
    cost: parseMoney(record.cost),
    requests: 1,
    prompt_cache_hit_tokens: record.prompt_cache_hit_tokens,
    prompt_cache_miss_tokens: record.prompt_cache_miss_tokens,
    completion_tokens: record.completion_tokens,
    reasoning_tokens: record.reasoning_tokens,
  };
}

function addToCell<D extends Dimension>(
  cells: Map<string, SumBy<D>>,
  part: Cell,
  by: readonly D[],
): void {
  const key = by.map((name) => part[name]).join("\0");
  let cell = cells.get(key);
  if (!cell) {
    const names = Object.fromEntries(by.map((name) => [name, part[name]]));
    cell = { ...names, ...emptySum() } as SumBy<D>;
    cells.set(key, cell);
  }
  addToSum(cell, part);
}
