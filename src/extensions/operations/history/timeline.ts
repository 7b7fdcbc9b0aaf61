// The timeline of the history: for each range, bins of equal length; the longer the range, the
// longer the bins. Each interval between two collections of reports is in one bin of each range.
import { OUTCOMES } from "../metrics/index.ts";
import {
  ACCOUNT_FIGURES,
  addRow,
  addRows,
  CACHE_FIGURES,
  MODEL_FIGURES,
  noFigures,
  OTHER,
  SECTIONS,
  SERVED,
  rowToJson,
  TOTAL_FIGURES,
  totalOf,
  type Figures,
  type Row,
  type Rows,
} from "./figures.ts";

/** The most rows in each section of a bin. Names get rows as they appear: busy ones do so early. */
const MAX_NAMES = 100;
/** The most rows in each section of a range's figures. */
const MAX_ROWS = 50;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

/** The ranges by name. `step`: the length of a bin in milliseconds. `bins`: how many there are. */
export const RANGES = {
  "15m": { step: 10 * SECOND, bins: 90 },
  "1h": { step: MINUTE, bins: 60 },
  "6h": { step: 5 * MINUTE, bins: 72 },
  "24h": { step: 15 * MINUTE, bins: 96 },
} as const;

export type RangeName = keyof typeof RANGES;

/** The figures of one interval between two collections of reports, or of several. */
interface Bin extends Figures {
  /** Seconds with complete figures. */
  seconds: number;
  /** The most requests in flight at any collection, in all processes together. */
  inFlight: number;
}

const emptyBin = (): Bin => ({ ...noFigures(), seconds: 0, inFlight: 0 });

/** Adds `from` to `into`. `maxNames`: the most names of a section with rows of their own. */
function addBin(into: Bin, from: Bin, maxNames: number): void {
  into.seconds += from.seconds;
  into.inFlight = Math.max(into.inFlight, from.inFlight);
  for (const section of SECTIONS) addRows(into[section], from[section], maxNames);
}

/** Collections are some milliseconds early or late: rounding makes a full bin 10.0 seconds. */
const wholeTenths = (seconds: number): number => Number(seconds.toFixed(1));

export function createTimeline() {
  /** Bins by range, and by their numbers counted from 1970. */
  const kept = new Map(Object.keys(RANGES).map((name) => [name, new Map<number, Bin>()]));

  return {
    /** Adds an interval. `at`: its middle, in milliseconds since 1970. */
    add(at: number, interval: Bin): void {
      for (const [name, { step, bins }] of Object.entries(RANGES)) {
        const number = Math.floor(at / step);
        const level = kept.get(name)!;
        const bin = level.get(number) ?? emptyBin();
        level.set(number, bin);
        addBin(bin, interval, MAX_NAMES);
        // Bins in the future were filled before the clock was set back: drop distant ones, too.
        for (const other of level.keys()) if (Math.abs(number - other) >= bins) level.delete(other);
      }
    },
    /** The figures of a range that ends at `now`. */
    range: (name: RangeName, now: number) => figuresOf(name, kept.get(name)!, now),
  };
}

function figuresOf(range: RangeName, kept: ReadonlyMap<number, Bin>, now: number) {
  const { step, bins: count } = RANGES[range];
  const first = Math.floor(now / step) - count + 1;
  const numbers = Array.from({ length: count }, (_, index) => first + index);
  const sum = emptyBin();
  const bins = numbers.map((number) => kept.get(number) ?? emptyBin());
  for (const bin of bins) addBin(sum, bin, Infinity);
  return {
    range,
    /** Milliseconds of a bin. */
    step,
    /** When the range begins and ends, in milliseconds since 1970. */
    from: first * step,
    to: now,
    /** Seconds of the range for which the data is complete. */
    seconds: wholeTenths(sum.seconds),
    /** The bins, oldest first. Null: nothing is known of that time. */
    bins: bins.map((bin, index) => {
      const seconds = wholeTenths(bin.seconds);
      if (seconds === 0) return null;
      const total = rowToJson(totalOf(bin), TOTAL_FIGURES);
      return { at: (first + index) * step, seconds, in_flight: bin.inFlight, ...total };
    }),
    /** The figures of the whole range. */
    total: { in_flight: sum.inFlight, ...rowToJson(totalOf(sum), TOTAL_FIGURES) },
    /** Null: the caller was not authenticated. */
    accounts: busiest(sum.accounts, OUTCOMES).map(({ name, other, row }) => ({
      account: name === "" ? null : name,
      other,
      ...rowToJson(row, ACCOUNT_FIGURES),
    })),
    models: busiest(sum.models, ["attempts"]).map(({ name, other, row }) => ({
      model: name,
      other,
      ...rowToJson(row, [...MODEL_FIGURES, ...CACHE_FIGURES]),
    })),
    /** By the name that clients requested: a model or an alias. */
    requested: busiest(sum.requested, CACHE_FIGURES).map(({ name, other, row }) => ({
      name,
      other,
      cache_hit: row["cache_hit"] ?? 0,
      cache_miss: row["cache_miss"] ?? 0,
      /** How many of its requests each model served. */
      served: Object.fromEntries(
        Object.entries(row).flatMap(([figure, count]) =>
          figure.startsWith(SERVED) ? [[figure.slice(SERVED.length), count]] : [],
        ),
      ),
    })),
    /** How often requests of an account ended with an error code, the commonest first. */
    refused: busiest(sum.refused, ["count"]).map(({ name, other, row }) => {
      const [account, code] = other ? [] : name.split("\0");
      return { account: account || null, code: code ?? null, other, count: row["count"] ?? 0 };
    }),
  };
}

/** The rows with the highest sum of these figures, and one row that sums up all others. */
function busiest(rows: Rows, figures: readonly string[]) {
  const weight = (row: Row): number => figures.reduce((sum, name) => sum + (row[name] ?? 0), 0);
  const ranked = [...rows]
    .filter(([name]) => name !== OTHER)
    .sort(([, one], [, other]) => weight(other) - weight(one));
  const others = [rows.get(OTHER) ?? {}, ...ranked.slice(MAX_ROWS).map(([, row]) => row)];
  const other = others.reduce<Row>(addRow, {});
  const named = ranked.slice(0, MAX_ROWS).map(([name, row]) => ({ name, row, other: false }));
  const isEmpty = Object.keys(other).length === 0;
  return isEmpty ? named : [...named, { name: OTHER, row: other, other: true }];
}
