// The tally of a process: its counters since its start. GET /metrics prints the families of
// families.ts. The history reads the growth between two collections of reports.
import type { DroppedLines } from "../../../core/extension/places.ts";
import { createLastReports, type InstallationStatus } from "../../scale/installation/index.ts";
import { FAMILIES, type Family, type FamilyName } from "./families.ts";

/**
 * Counted for the console alone, because their labels have too many values for Prometheus:
 * figures of an account, of the model that served and of a key (labels: figure, name), and requests
 * that ended with an error (labels: status, code, key, account, limit of requests per minute).
 */
export type ConsoleFamily = "account" | "model" | "key" | "refusal";

/** The values of one set of labels. */
export interface Counted {
  /** The number of values. */
  count: number;
  /** Their sum. */
  sum: number;
  /** A histogram's counts by bucket, not cumulative. Empty: it is not a histogram. */
  readonly buckets: number[];
  /** How many reports the process has made since the last value. */
  idle: number;
}

/** Rows by family, then by label values joined by "\0". Can be sent to another process. */
export type Tally = Map<string, Map<string, Counted>>;

/** The name of this extension, and of the reports that its part in each process makes. */
const NAME = "metrics";

/** The report of one process, as data that can be cloned. */
export interface ProcessTally {
  /** A random id, new at each start of the process. */
  readonly process: string;
  /** The live tally, not a copy: it keeps counting. */
  readonly tally: Tally;
}

/**
 * The most rows of a console family. Further values are added to a row with the first label alone,
 * so that sums stay exact. An account may therefore have rows for only some of its figures.
 */
const MAX_CONSOLE_ROWS = 5_000;
/** Reports without a new value before a row may be dropped: by then the history has read it. */
const MAX_IDLE = 8;

const families: { readonly [name: string]: Family | undefined } = FAMILIES;

/** Counts `value` in a family, under the values of its labels. */
export function count(
  tally: Tally,
  name: FamilyName | ConsoleFamily,
  labels: readonly string[],
  value = 1,
): void {
  const key = labels.join("\0");
  const row = tally.get(name)?.get(key) ?? addRow(tally, name, key, labels[0]!);
  row.count += 1;
  row.sum += value;
  row.idle = 0;
  if (row.buckets.length === 0) return;
  const bucket = families[name]!.buckets!.findIndex((bound) => value <= bound);
  if (bucket !== -1) row.buckets[bucket]! += 1;
}

/** Adds a missing row. `overflowKey` is used instead of `key` if there are too many rows. */
function addRow(tally: Tally, name: string, key: string, overflowKey: string): Counted {
  const family = families[name];
  const rows = tally.get(name) ?? new Map<string, Counted>();
  tally.set(name, rows);
  const used = !family && rows.size >= MAX_CONSOLE_ROWS ? overflowKey : key;
  const buckets = (family?.buckets ?? []).map(() => 0);
  const row = rows.get(used) ?? { count: 0, sum: 0, buckets, idle: 0 };
  rows.set(used, row);
  return row;
}

/**
 * Must be called at each report. Drops idle rows of console families that are more than half full.
 * A dropped row that returns starts at zero, which growth() handles.
 */
export function dropIdle(tally: Tally): void {
  for (const [name, rows] of tally) {
    const { size } = rows;
    for (const [key, row] of families[name] ? [] : rows) {
      row.idle += 1;
      if (row.idle > MAX_IDLE && size > MAX_CONSOLE_ROWS / 2) rows.delete(key);
    }
  }
}

/** The rows of a family, with the values of their labels. */
export const rowsIn = (tally: Tally, name: FamilyName | ConsoleFamily) =>
  [...(tally.get(name) ?? [])].map(([labels, row]) => [labels.split("\0"), row] as const);

const plus = (one: Counted, other: Counted, sign = 1): Counted => ({
  count: one.count + sign * other.count,
  sum: one.sum + sign * other.sum,
  buckets: one.buckets.map((values, at) => values + sign * other.buckets[at]!),
  idle: Math.min(one.idle, other.idle),
});

/** Sums up tallies into a new one. */
export function merge(all: readonly Tally[]): Tally {
  const sums: Tally = new Map();
  for (const [name, rows] of all.flatMap((tally) => [...tally])) {
    const sum = sums.get(name) ?? new Map<string, Counted>();
    sums.set(name, sum);
    for (const [labels, row] of rows) {
      const before = sum.get(labels);
      sum.set(labels, before ? plus(before, row) : { ...row, buckets: [...row.buckets] });
    }
  }
  return sums;
}

/**
 * The returned function takes the collected reports of all processes and returns their growth since
 * the previous call. Sums of growth never fall, even if a process dies or misses a collection.
 * `partOf` selects families.
 */
export function createGrowth(
  partOf = (tally: Tally): Tally => tally,
): (collected: Pick<InstallationStatus, "reports">) => Tally {
  const before = createLastReports<Tally>();
  return ({ reports }) =>
    merge(
      reports.map(({ extensions, droppedLines }) => {
        const { process, tally } = extensions[NAME] as ProcessTally;
        const now = merge([partOf(tally), droppedIn(droppedLines)]);
        return growth(now, before(process, now));
      }),
    );
}

/** Dropped log lines, as a tally. */
export function droppedIn(dropped: DroppedLines): Tally {
  const rows = new Map<string, Counted>();
  for (const [log, lines] of Object.entries(dropped))
    if (lines > 0) rows.set(log, { count: lines, sum: lines, buckets: [], idle: 0 });
  return new Map([["chat_gateway_log_lines_dropped_total", rows]]);
}

/** The growth of a tally since an earlier copy. `before` undefined: since its start. */
export function growth(now: Tally, before: Tally | undefined): Tally {
  const grown: Tally = new Map();
  for (const [name, rows] of now) {
    const added = new Map<string, Counted>();
    for (const [labels, row] of rows) {
      const known = before?.get(name)?.get(labels);
      if (!known || row.count < known.count) added.set(labels, row);
      else if (row.count > known.count) added.set(labels, plus(row, known, -1));
    }
    grown.set(name, added);
  }
  return grown;
}

/** The families that GET /metrics shows. */
export const forPrometheus = (tally: Tally): Tally =>
  new Map([...tally].filter(([name]) => name in FAMILIES));
