// The one tally of a process: what it has counted of its requests since its start. GET /metrics
// prints the families of families.ts. The history takes what was added between two looks.
import type { DroppedLines } from "../../../core/extension/places.ts";
import { createLastReports, type InstallationStatus } from "../../scale/installation/index.ts";
import { FAMILIES, type Family, type FamilyName } from "./families.ts";

/**
 * Counted for the console alone, because their labels have too many values for Prometheus:
 * figures of an account, of the model that served and of a key (labels: figure, name), and requests
 * that ended with an error (labels: status, code, key, account).
 */
export type ConsoleFamily = "account" | "model" | "key" | "refusal";

/** The values of one set of labels. */
export interface Counted {
  /** How many values. */
  count: number;
  /** Their sum. */
  sum: number;
  /** Of a histogram: the values in each bucket that no smaller bucket has. Empty: none. */
  readonly buckets: number[];
  /** Reports of the process since the last value. */
  idle: number;
}

/** By family, and by the values of its labels with "\0" between them. It can be cloned. */
export type Tally = Map<string, Map<string, Counted>>;

/** The name of this extension, and of the reports that its part in each process makes. */
const NAME = "metrics";

/** The report of a process: data that can be sent to another process. */
export interface ProcessTally {
  /** Tells processes apart, also from those of an earlier start. */
  readonly process: string;
  /** Counted since the start of the process. It goes on counting. */
  readonly tally: Tally;
}

/**
 * Rows of a console family. What has none of its own beyond it is counted in a row with the first
 * label alone, so that sums stay exact. Of one account some figures can be there and some not.
 */
const MAX_CONSOLE_ROWS = 5_000;
/** Reports without a new value before a row may make room: by then some look has seen its last. */
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

/** A row that is not there yet. `instead`: the key that is used where there are too many. */
function addRow(tally: Tally, name: string, key: string, instead: string): Counted {
  const family = families[name];
  const rows = tally.get(name) ?? new Map<string, Counted>();
  tally.set(name, rows);
  const used = !family && rows.size >= MAX_CONSOLE_ROWS ? instead : key;
  const buckets = (family?.buckets ?? []).map(() => 0);
  const row = rows.get(used) ?? { count: 0, sum: 0, buckets, idle: 0 };
  rows.set(used, row);
  return row;
}

/**
 * To be called at each report: of console families that are half full, drops rows that have been
 * idle. If one returns it begins at zero, which growth() expects.
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

/** A copy: the sums of the tallies of several processes. */
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
 * Returns what takes a look at all processes, and returns what they have counted since the look
 * before. So sums of growth never fall: a process that has died, or is late, keeps its share.
 * `partOf` chooses the families that matter.
 */
export function createGrowth(
  partOf = (tally: Tally): Tally => tally,
): (look: Pick<InstallationStatus, "reports">) => Tally {
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

/** The lines of each log that a process has dropped since its start. */
export function droppedIn(dropped: DroppedLines): Tally {
  const rows = new Map<string, Counted>();
  for (const [log, lines] of Object.entries(dropped))
    if (lines > 0) rows.set(log, { count: lines, sum: lines, buckets: [], idle: 0 });
  return new Map([["chat_gateway_log_lines_dropped_total", rows]]);
}

/** What was added to a tally since an earlier copy. `before` undefined: since its start. */
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
