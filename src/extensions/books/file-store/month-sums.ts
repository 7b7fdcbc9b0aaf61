// What the records of the file store add up to, by day, account, key, model, provider and currency.
// A month is read once; after that only the records that have come since are read and added.
import { setImmediate as turnEnd } from "node:timers/promises";
import { parseMoney } from "../../usage-records/index.ts";
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

/** The sums that most questions need. */
const COARSE: readonly Dimension[] = ["day", "account", "model", "currency"];
/** The sums that questions about keys and providers need. They are made when one is asked. */
const FINE: readonly Dimension[] = [...COARSE, "key_id", "provider"];
/** Of a cell of COARSE the last two dimensions are undefined. */
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
  /** Finds the file of a month, and reads the cursor once more to see whether it was replaced. */
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
export function createMonthSums(options: MonthSumsOptions): SumMonth {
  const coarse = createCells(COARSE, options);
  const fine = createCells(FINE, options);

  return async (filter, by) => {
    const names: readonly string[] = by;
    const isFine =
      names.includes("key_id") ||
      names.includes("provider") ||
      filter.keyId !== undefined ||
      filter.provider !== undefined;
    const sums = new Map<string, SumBy<(typeof by)[number]>>();
    const isWanted = cellMatcher(filter);
    let seen = 0;
    for (const cell of await (isFine ? fine : coarse)(filter.month)) {
      seen += 1;
      if (seen % CELLS_AT_ONCE === 0) await turnEnd();
      if (isWanted(cell)) addToCell(sums, cell, by);
    }
    return [...sums.values()];
  };
}

/** Whether a cell matches a filter. Days are compared as texts. */
function cellMatcher(filter: MonthFilter): (cell: Cell) => boolean {
  const { day, from = "", to = "9999-12-31", account, model, keyId, provider } = filter;
  const wanted = Object.entries({ day, account, model, key_id: keyId, provider }).filter(
    ([, value]) => value !== undefined,
  ) as [Dimension, string][];
  return (cell) =>
    cell.day >= from && cell.day <= to && wanted.every(([name, value]) => cell[name] === value);
}

/** The sums of a month that agree in these dimensions. */
type CellsOf = (month: string) => Promise<Iterable<Cell>>;

function createCells(
  dimensions: readonly Dimension[],
  { files, readCursor, parse }: MonthSumsOptions,
): CellsOf {
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
      for (const line of lines) addToCell(month.cells, cellOf(parse(line, name)), dimensions);
      month.end = end;
    }
    // If it was written anew meanwhile, what was read may be half of either file.
    if (versionOf(name, files.readCursor()) !== version) await read(name, month);
  }

  return async (name) => {
    const month = months.get(name) ?? emptyMonth();
    months.set(name, month);
    month.reading = month.reading.catch(() => undefined).then(() => read(name, month));
    await month.reading;
    return month.cells.values();
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
    key_id: record.key_id,
    provider: record.provider ?? "",
    currency: record.currency,
    cost: parseMoney(record.cost),
    requests: 1,
    prompt_cache_hit_tokens: record.prompt_cache_hit_tokens,
    prompt_cache_miss_tokens: record.prompt_cache_miss_tokens,
    cache_write_tokens: record.cache_write_tokens,
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
